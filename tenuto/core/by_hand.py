"""What was done of a step's items before an engine took the run over: by a person, or by another program.

    made(pipeline, run, step, items)    the seats that need not be taken any more, by their keys in the stay
    covered(run, step, since)           a step without items of its own, whose work was done item by item

Whoever leads a run by hand names their work as they like. It counts as an item's when it says so: a phase called `role:item`
(or `role`, for every item), an attempt of that role whose item or task names one, a commit recorded for one, an item marked
as done. A name fits as everywhere (items.py): one that fits two items fits none.

Rule 1: work counts while what it was made from stands. After later work on a step before it, it is to be done again.
Rule 2: the last word counts. An item one of whose agents failed last is done again, as a whole.
Rule 3: what an engine did is not looked at here: its items know their own state. A commit counts where nobody but a person
can have made it: after the last attempt of an engine on that item.
"""

from __future__ import annotations

from tenuto.core.items import directory, key_of, look_up
from tenuto.core.visits import key_for, seats_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tenuto.core.items import Directory, PlannedItem
    from tenuto.core.pipeline_records import Pipeline, Step
    from tenuto.core.records import Run

    Work = tuple[str, str, str, bool]  # role, the item as it was named, when it ended, well?

EVERY = ""  # of roles: all that work on the item; of items: all of them
_LEADING = ("step", "task", "item")


def made(pipeline: Pipeline, run: Run, step: Step, items: Sequence[PlannedItem]) -> list[str]:
    names, since = directory(items), _since(pipeline, run, step)
    last: dict[tuple[str, str], bool] = {}
    tried = {one["item"]: one["ended_at"] or "~" for one in run["attempts"].values() if "seat" in one["extra"]}
    for role, named, at, well in sorted(_work(pipeline, run), key=lambda work: work[2]):
        found = [item["id"] for item in items] if named == EVERY else _fitting(names, named)
        for item in found if at >= since else ():
            if role != EVERY or at > tried.get(item, ""):
                last[_plain(role), item] = well
    done = _marked(pipeline, run, step, items)
    found_keys: list[str] = []
    for one in items:
        said = {role: well for (role, item), well in last.items() if item == one["id"]} if last else {}
        if one["id"] in done or (said and all(said.values())):
            for seat in seats_for(step, one):
                if one["id"] in done or EVERY in said or _plain(seat["id"]) in said or _plain(seat["role"]) in said:
                    found_keys.append(key_for(seat, one["id"]))
    return found_keys


def covered(run: Run, step: Step, since: str) -> bool:
    """`implementer:task-1` and `implementer:task-2` are the step `implementer`, where the run knows these two items."""
    if step["kind"] != "agent" or not run["items"]:
        return False
    known: Any = [{"id": name, "title": item["title"]} for name, item in run["items"].items()]
    names, done = directory(known), dict.fromkeys(run["items"], False)
    for visit in run["visits"]:
        role, _, item = visit["step"].partition(":")
        if item and role == step["id"] and (visit["ended_at"] or "") >= since:
            for name in _fitting(names, item):
                done[name] = visit["status"] == "success"
    return all(done.values())


def _since(pipeline: Pipeline, run: Run, step: Step) -> str:
    """When the work that this step starts from ended."""
    before: list[str] = []
    for one in pipeline["steps"]:
        if one["id"] == step["id"]:
            break
        if one["kind"] in ("agent", "cluster", "waves"):
            before.append(one["id"])
    return max((v["ended_at"] or "" for v in run["visits"] if v["step"] in before and v["status"] == "success"), default="")


def _work(pipeline: Pipeline, run: Run) -> Iterator[Work]:
    steps = [step["id"] for step in pipeline["steps"]]
    for visit in run["visits"]:
        if visit["step"] not in steps and visit["status"] in ("success", "failed"):
            role, _, item = visit["step"].partition(":")
            yield role, visit["item"] or item, visit["ended_at"] or "", visit["status"] == "success"
    for attempt in run["attempts"].values():
        named = attempt["item"] or attempt["task"]
        if "seat" not in attempt["extra"] and attempt["ended_at"] and named:
            well = attempt["status"] == "completed" and attempt["verdict"] in (None, "DONE")
            yield attempt["role"], named, attempt["ended_at"], well
    for commit in run["commits"]:
        yield EVERY, commit["step"], commit["at"], True


def _marked(pipeline: Pipeline, run: Run, step: Any, items: Sequence[PlannedItem]) -> list[str]:
    """Items that somebody marked as done. Where an engine's agent wrote the plan since, only those that are called the same."""
    ours = any("seat" in one["extra"] and one["status"] == "completed" and _writes_plan(pipeline, step, one) for one in run["attempts"].values())
    names, titles = directory(items), {item["id"]: key_of(item["title"]) for item in items}
    found = []
    for name, item in run["items"].items():
        if item["status"] == "completed" and "id" not in item["extra"]:
            fits = look_up(names, name)
            if len(fits) == 1 and (not ours or key_of(item["title"]) == titles[fits[0]]):
                found.append(fits[0])
    return found


def _writes_plan(pipeline: Pipeline, step: Any, attempt: Any) -> bool:
    from tenuto.core.definition.graph import seats

    wrote = next((one for one in pipeline["steps"] if one["id"] == attempt["step"]), None)
    return wrote is not None and any(path in step["waves"]["plan"] for seat in seats(wrote) for path in seat["out"])


def _fitting(names: Directory, named: str) -> list[str]:
    """`task-1`, `implement_step_1`, `step_1_middleware`: the item that is meant, where it is one."""
    words = named.replace("_", "-").replace(":", "-").replace(" ", "-").split("-")
    marks = [place for place, word in enumerate(words) if word.lower() in _LEADING]
    for text in (named, "-".join(words[marks[-1] :]) if marks else ""):
        found = look_up(names, text) if text else []
        if len(found) == 1:
            return found
    return []


def _plain(role: str) -> str:
    return role.rpartition(":")[2].lower().replace("_", "-")
