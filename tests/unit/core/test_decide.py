"""What every command has in common, and the repository's own stream: each rule of core/decide.py."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.decide import decide, decide_repo
from tenuto.core.fold import apply_repo, fold_repo
from tenuto.core.parts import new_repo
from tenuto.errors import BadInput
from tests.unit.core.by_command import BEGUN, Asked

AT = {"at": "2026-11-15T10:00:00.000Z", "by": "ada"}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ({"do": "Dance"}, "unknown-command"),
        ({"do": "Pause", "reason": "x"}, "no-run"),
        ({"do": "Note", "text": "x"}, "no-run"),
    ],
)
def test_a_command_that_is_none_or_needs_a_run(command: Any, code: str) -> None:
    with pytest.raises(BadInput) as refusal:
        decide(None, new_repo(), None, command | AT)
    assert refusal.value.code == code


def test_every_event_says_when_and_by_whom_and_the_first_carries_the_key() -> None:
    asked = Asked()
    asked.do("StartStep", step="plan")
    command: Any = {
        "do": "EndStep",
        "step": "plan",
        "status": "success",
        "key": "k",
        "reported_at": "2026-11-15T09:00:00.000Z",
        **AT,
    }
    [event] = decide(None, new_repo(), asked.run, command)
    assert (event["type"], event["at"], event["by"], event["key"], event["reported_at"]) == (
        "StepEnded",
        AT["at"],
        "ada",
        "k",
        "2026-11-15T09:00:00.000Z",
    )
    begun: Any = {**BEGUN, **AT}
    [first] = decide(None, new_repo(), None, begun)
    assert "key" not in first and "reported_at" not in first and first["v"] >= 1
    gate: Any = {"do": "OpenGate", "name": "g", "prompt": "?", **AT}
    asked.do("EndStep", step="plan", status="success")
    asked.do(**gate)
    reject: Any = {"do": "DecideGate", "decision": "reject", "who": "ada", "key": "k", "reported_at": "t", **AT}
    both = decide(None, new_repo(), asked.run, reject)
    assert [event.get("key") for event in both] == ["k", None] and [event.get("reported_at") for event in both] == [
        "t",
        "t",
    ]
    nothing: Any = {"do": "SetFlags", "flags": {}, "key": "k", **AT}
    assert decide(None, new_repo(), asked.run, nothing) == []


def test_what_the_caller_has_asked_already_is_not_asked_again() -> None:
    from tests.unit.core.by_command import Driven

    run = Driven("documents: docs/{slug}\nsteps:\n  - {id: a, agent: {role: researcher, mode: focused, focus: x}}\n")
    command: Any = {"do": "BeginVisit", **AT}
    assert [
        event["type"] for event in decide(run.pipeline, new_repo(), run.run, command, [{"act": "begin", "step": "a"}])
    ] == ["StepStarted"]
    with pytest.raises(Exception, match="does not ask for"):
        decide(run.pipeline, new_repo(), run.run, command, [])


def test_the_repository_knows_its_current_run_who_owns_a_file_and_its_settings() -> None:
    repo = new_repo()

    def do(name: str, **more: Any) -> list[str]:
        command: Any = {"do": name, **AT, **more}
        events = decide_repo(repo, command)
        for event in events:
            apply_repo(repo, event)
        return [event["type"] for event in events]

    assert (
        do("MakeCurrent", run="x") == ["CurrentRunChanged"]
        and do("MakeCurrent", run="x") == []
        and repo["current"] == "x"
    )
    assert (
        do("OwnFile", path="p", run="x") == ["FileOwned"]
        and do("OwnFile", path="p", run="x") == []
        and repo["owners"] == {"p": "x"}
    )
    assert do("OwnFile", path="p", run="y") == ["FileOwned"] and repo["owners"] == {"p": "y"}
    assert (
        do("OwnFile", path="p", run=None) == ["FileOwned"]
        and repo["owners"] == {}
        and do("OwnFile", path="p", run=None) == []
    )
    assert do("ChangeSettings", changes={}) == [] and do("ChangeSettings", changes={"a": {"b": 1}}) == [
        "SettingsChanged"
    ]
    assert do("ChangeSettings", changes={"a": {"b": 1}}) == [], "said again"
    do("ChangeSettings", changes={"a": {"c": 2}})
    assert repo["settings"] == {"a": {"b": 1, "c": 2}} and repo["version"] == 6
    current: Any = {"type": "CurrentRunChanged", "run": "x", **AT}
    assert fold_repo([current])["current"] == "x" and fold_repo([current])["version"] == 1
    assert fold_repo([], None) == new_repo() and fold_repo([], repo) is repo
    with pytest.raises(KeyError):
        apply_repo(repo, {"type": "Danced"})


def test_what_a_hook_may_never_need_is_loaded_when_it_is_first_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenuto.core import decide as module
    from tenuto.core.todo import todo
    from tests.unit.core.by_command import Driven

    run = Driven("documents: docs/{slug}\nsteps:\n  - {id: a, agent: {role: researcher, mode: focused, focus: x}}\n")
    monkeypatch.setattr(module, "_todo", None)
    for _ in range(2):
        assert module.ask(run.pipeline, run.run, AT["at"]) == todo(run.pipeline, run.run, AT["at"]) != []
