"""Which items run again, and what is wrong with an item before it ever runs.

    affected(items, findings)     the items that findings name by id or file; none matched: all
    due(items, before, ...)       the items that a fix pass runs
    agent_for(item, ...)          the agent that an item is given to
    passed_limits(item, limits)   what the planner was told not to exceed, and did

Rule 1: an item that is DONE, unchanged and not named as failing does not run again.
Rule 2: a finding that names nothing concerns everybody who is asked to fix anything.
Rule 3: an agent that nobody knows is never started; the default is, with a warning.
Rule 4: limits are warnings here. Whether one sends the plan back is the pipeline's choice.
"""

from __future__ import annotations

from tenuto.core.items import named_in, same_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from typing import Any, TypedDict

    from tenuto.core.items import PlannedItem
    from tenuto.core.pipeline_records import ItemLimits

    class Affected(TypedDict):
        items: list[str]
        unmatched: list[int]  # which findings name no item: these go to every item above


# The planner's limits, where a pipeline gives none of its own.
LIMITS: ItemLimits = {"files": 3, "depends_on": 2, "lines": 500, "effort": "Medium"}

_EFFORTS = {
    "Low": ("low", "small", "s", "xs", "trivial", "tiny", "easy", "simple"),
    "Medium": ("medium", "m", "moderate", "med"),
    "High": ("high", "large", "l", "xl", "xxl", "hard", "complex", "huge", "very"),
}
_TEST_FOLDERS = ("test", "tests", "__tests__", "spec", "specs", "testing", "e2e")
_RANKS = {"Low": 0, "Medium": 1, "High": 2}
_COMPARED = ("title", "files", "depends_on", "agent", "description")


# ---- which items run -------------------------------------------------------------------------------


def affected(items: Sequence[PlannedItem], findings: Sequence[Mapping[str, Any]]) -> Affected:
    """`findings`: each with a "text", and a "file" where it has one."""
    hit = {item["id"]: False for item in items}
    unmatched: list[int] = []
    for position, finding in enumerate(findings):
        names = _concerned(items, finding)
        for name in names:
            hit[name] = True
        if not names:
            unmatched.append(position)
    matched = any(hit.values())
    return {"items": [name for name, yes in hit.items() if yes or not matched], "unmatched": unmatched}


def _concerned(items: Sequence[PlannedItem], finding: Mapping[str, Any]) -> list[str]:
    text, file = str(finding.get("text") or ""), str(finding.get("file") or "")
    by_id = dict.fromkeys(named_in(text, items))
    places = [file, *(word.strip("`'\"*()[],;.") for word in text.split() if "." in word or "/" in word)]
    return [
        item["id"]
        for item in items
        if item["id"] in by_id or any(same_file(own, place) for own in item["files"] for place in places)
    ]


def due(items: Sequence[PlannedItem], before: Sequence[PlannedItem], *, done: Container[str], failing: Container[str]) -> list[str]:
    """What a fix pass runs: new or changed items, those named as failing, and those that never ended well."""
    old = {item["id"]: item for item in before}
    return [
        item["id"]
        for item in items
        if item["id"] not in done
        or item["id"] in failing
        or item["id"] not in old
        or has_changed(old[item["id"]], item)
    ]


def has_changed(before: PlannedItem, after: PlannedItem) -> bool:
    """Whether the work itself is another one. To stand in another wave is not a change."""
    first, second = before.get("digest"), after.get("digest")
    if first and second:
        return first != second
    return any(before.get(name) != after.get(name) for name in _COMPARED)


# ---- what an item asks for -------------------------------------------------------------------------


def agent_for(item: PlannedItem, valid: Sequence[str], default: str) -> tuple[str, str]:
    """The agent, and a warning that is empty when all is well."""
    written = item["agent"]
    if written is None or not written.strip():
        return default, ""
    plain = "-".join(written.strip().strip("`*'\"").lower().replace("_", " ").replace("-", " ").split())
    if plain in valid:
        return plain, ""
    return default, (
        f"item {item['id']} names the agent '{written}', which is none of {', '.join(valid)}; {default} is used instead"
    )


def passed_limits(item: PlannedItem, limits: ItemLimits = LIMITS) -> list[str]:
    """One sentence per limit that the item passes."""
    files = production_files(item)
    count = max(len(files), 0 if item["files"] else item.get("file_count", 0))
    found: list[str] = []
    for what, value, limit in (
        ("production files", count, limits["files"]),
        ("dependencies", len(item["depends_on"]), limits["depends_on"]),
        ("lines", item["lines"] or 0, limits["lines"]),
    ):
        if limit is not None and value > limit:
            found.append(f"item {item['id']} has {value} {what}; the limit is {limit}")
    effort = effort_of(item)
    if limits["effort"] and effort and _RANKS[effort] > _RANKS[limits["effort"]]:
        found.append(f"item {item['id']} is of {item['effort']} effort; the limit is {limits['effort']}")
    return found


def production_files(item: PlannedItem) -> list[str]:
    """The item's files without its tests."""
    return [file for file in dict.fromkeys(item["files"]) if not is_test(file)]


def is_test(path: str) -> bool:
    *folders, name = path.replace("\\", "/").split("/")
    if any(folder.lower() in _TEST_FOLDERS for folder in folders):
        return True
    stem, low = name.partition(".")[0], name.lower()
    if ".test." in low or ".spec." in low or stem.lower() == "conftest":
        return True
    # `ParserTest.java` is a test, `Latest.java` is not.
    return (
        stem.lower().startswith("test_")
        or stem.lower().endswith(("_test", "-test", "_spec"))
        or stem.endswith(("Test", "Tests"))
    )


def effort_of(item: PlannedItem) -> str:
    """Low, Medium, High; the higher end of a range; empty when the plan says nothing that we know."""
    said = (item["effort"] or "").lower()
    words = "".join(c if c.isalnum() else " " for c in said).split()
    found = [level for level, names in _EFFORTS.items() if any(word in names for word in words)]
    return found[-1] if found else ""
