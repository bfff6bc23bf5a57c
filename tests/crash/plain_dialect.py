"""The smallest dialect: one state file, one append-only file. For tests of what lies below dialects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tenuto.encoding import loads_strict, pretty
from tenuto.errors import Refused


def render(run: Any, repo: Any) -> dict[str, bytes]:
    shown = {
        "status": run["status"],
        "steps": [visit["step"] for visit in run["visits"]],
        "flags": run["flags"],
        **run["extra"].get("plain", {}),
    }
    return {f"docs/{run['id']}.json": pretty(shown).encode()}


def read(run: Any, path: str, before: bytes, after: bytes, around: Any) -> list[Any]:
    old, new = loads_strict(before), loads_strict(after)
    if not isinstance(new, dict):
        raise Refused("not-an-object", f"{path} holds no object")
    for name in ("status", "steps"):
        if new.get(name) != old.get(name):
            raise Refused("not-yours", f"{name} is changed by commands only")
    extra = {
        name: value
        for name, value in new.items()
        if name not in ("status", "steps", "flags") and old.get(name) != value
    }
    flags = {name: value for name, value in new.get("flags", {}).items() if old["flags"].get(name) != value}
    return [{"do": "SetFlags", "flags": flags}, {"do": "AbsorbEdit", "extra": extra}]


def log(run: Any, events: list[Any]) -> dict[str, bytes]:
    return {"docs/history.md": b"".join(f"- {event['at']} {event['type']}\n".encode() for event in events)}


PLAIN: Any = SimpleNamespace(
    name="plain",
    missing="rewrite",
    stand_in={},
    dispensable=(),
    render=render,
    read=read,
    log=log,
    paths=lambda run, repo: [f"docs/{run['id']}.json"],
)
