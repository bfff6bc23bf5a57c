"""Check a pipeline before anything starts.

    check(raw)         -> (pipeline, [])         the full record; pipeline_records.py has its rules
    check(raw)         -> (None, problems)       everything that is wrong, each with its place and a way out
    stage_gates(p)     -> what must exist before each stage may be left

`raw` is plain data: mappings, lists, text, numbers, true/false, null. Null means "not given".

Rule 1: a wrong pipeline never starts. Unknown keys, steps, roles and files are refused by name.
Rule 2: nothing runs for ever. Going back needs a bound; only a person's wish has none.
Rule 3: one form. Shorthand and defaults are spelled out here, so nobody else has to know them,
and checking a checked pipeline changes nothing.
Rule 4: no expressions. A pipeline is data; what it cannot say in these words belongs in a role.
"""

from __future__ import annotations

from tenuto.core.definition import graph, paths, reviews, routes, seats, steps
from tenuto.core.definition.values import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from tenuto.core.pipeline_records import Pipeline, Problem, Setup, StageGate, Step
    from tenuto.core.records import Run

DIALECTS = ("context", "flow", "feature_docs", "staged", "feature_state")
LANGUAGE = 1
MOST_STEPS = 200
_KEYS = (
    "language", "name", "description", "shown_as", "documents", "mode", "starts_from", "finish", "cap", "workspace", "setup",
    "memory", "switches", "given", "existing", "skips", "budget", "settings", "defaults", "steps",
)  # fmt: skip


def check(
    raw: object, roles: Collection[str] | Mapping[str, Collection[str]] | None = None
) -> tuple[Pipeline | None, list[Problem]]:
    """`roles` are the names that exist, or each name with its modes ("" is the plain one)."""
    problems: list[Problem] = []
    view = View(raw, (), problems)
    if not view.is_mapping("a pipeline", _KEYS):
        return None, problems
    pipeline = _top(view)
    setting = reviews.Setting(
        view.get("defaults"), pipeline["given"], roles, pipeline["settings"], list(pipeline["switches"])
    )
    if view.has("defaults"):
        view.get("defaults").is_mapping("`defaults`", seats.INHERITED)
        seats.inspect(view.get("defaults"))
    found = _steps(view.get("steps"), setting)
    pipeline["steps"] = [step for _, step in found]
    checked: Pipeline = pipeline
    if not problems:  # routes over half-read steps would only report the same thing twice
        atlas = routes.Atlas(checked["steps"], checked["finish"])
        for there, step in found:
            on: Any = routes.read_on(there.get("on"), step, atlas, reviews.implied(there, step, setting))
            step["on"] = on
    if not problems:
        graph.complete(checked["steps"])
        graph.check(view, checked, roles)
    if problems:
        return None, _once(problems)
    return _own(checked), []


def documents_of(pipeline: Pipeline, run: Run) -> str:
    """The folder of a run's documents: where it was led by hand before, if that has another name."""
    told = run["settings"].get("documents")
    return str(told) if told else pipeline["documents"].replace("{slug}", run["id"])


def stage_gates(pipeline: Pipeline, switches: Mapping[str, bool] | None = None) -> list[StageGate]:
    """For each stage with evidence: what it must leave behind, and which step does. Skipped steps prove nothing."""
    on = {**pipeline["switches"], **(switches or {})}
    running = [step for step in pipeline["steps"] if step["when"] == "always" or on.get(step["when"])]
    order = list(dict.fromkeys(step["stage"] for step in running if step["stage"] and not step["aside"]))
    found: list[StageGate] = []
    for index, stage in enumerate(order):
        proving = [step for step in running if step["stage"] == stage and step["evidence_for_next"]]
        if proving:
            required = list(dict.fromkeys(path for step in proving for path in step["evidence_for_next"]))
            following = order[index + 1] if index + 1 < len(order) else "COMPLETE"
            found.append({"stage": stage, "next": following, "required": required, "step": proving[-1]["id"]})
    return found


def _top(view: View) -> Any:
    language = view.get("language").number("the language", LANGUAGE, least=1)
    if language != LANGUAGE:
        view.get("language").note(
            "newer-language", f"this is language {language}; known is {LANGUAGE}", "upgrade, or rewrite it"
        )
    if not view.has("name"):
        view.note("missing", "a pipeline needs a name", "for example name: my-pipeline")
    mode = view.get("mode").choice("the mode", ("standard", "poc"), "standard")
    finish = view.get("finish").choice("the end", ("completed", "poc-complete", "graduated"), "completed")
    starts = view.get("starts_from").choice("the start", ("new", "poc-complete"), "new")
    if finish == "poc-complete" and mode != "poc":
        view.get("finish").note("contradiction", "only mode: poc can end as poc-complete", "mode: poc")
    if (finish == "graduated") != (starts == "poc-complete"):
        view.get("finish").note("contradiction", "what graduates starts from poc-complete, and the other way round")
    settings = view.get("settings").value
    if settings is not None and not isinstance(settings, dict):
        view.get("settings").note("wrong-type", "settings must be a mapping")
    return {
        "language": LANGUAGE, "name": seats.identifier(view.get("name"), "the name of a pipeline", "unnamed"),
        "description": view.get("description").text("the description"),
        "shown_as": view.get("shown_as").words("a dialect", DIALECTS),
        "documents": _documents(view.get("documents")),
        "mode": mode, "starts_from": starts, "finish": finish,
        "cap": view.get("cap").number("the cap", 4, least=1, most=1000),
        "workspace": view.get("workspace").choice("the workspace", ("shared", "worktree"), "shared"),
        "setup": _setup(view.get("setup")),
        "memory": view.get("memory").choice("memory", ("run", "none"), "none"),
        "switches": _switches(view.get("switches")),
        "given": paths.read(view.get("given"), "a given document"),
        "existing": paths.read(view.get("existing"), "an existing document"),
        "skips": view.get("skips").words("a skipped phase"),
        "budget": steps.budget(view.get("budget")),
        "settings": settings if isinstance(settings, dict) else {},
        "steps": [],
    }  # fmt: skip


def _documents(view: View) -> str:
    if isinstance(view.value, str) and view.value.strip("/"):  # a folder may be written like one: docs/
        view = View(view.value.rstrip("/"), view.path, view.problems)
    return "." if view.value == "." else paths.read_one(view, "the documents' folder", "docs/feature/{slug}")


def _setup(view: View) -> Setup:
    if view.value is not None:
        view.is_mapping("the set-up", ("run", "copy"))
    return {"run": view.get("run").words("a command"), "copy": paths.read(view.get("copy"), "a file to copy")}


def _switches(view: View) -> dict[str, bool]:
    """`approval` always exists, and is off unless the run asks for it."""
    found = {"approval": False}
    if view.value is not None and not isinstance(view.value, dict):
        view.note("wrong-type", "switches must be a mapping", "for example {tests: true}")
    for name, value in view.fields():
        if name == "always":
            value.note("contradiction", "`always` is no switch", "choose another name")
        found[name] = value.flag(f"the switch {name}", False)
    return found


def _steps(view: View, setting: reviews.Setting) -> list[tuple[View, Step]]:
    entries = view.entries() if isinstance(view.value, list) else []
    if not entries:
        view.note("missing", "a pipeline needs steps", "for example steps: [{id: work, agent: {role: implementer}}]")
    if len(entries) > MOST_STEPS:
        view.note("out-of-range", f"a pipeline has at most {MOST_STEPS} steps, not {len(entries)}")
        return []
    found: list[tuple[View, Step]] = []
    seen: list[str] = []
    for position, entry in enumerate(entries, 1):
        step = steps.read(entry, position, setting)
        if step is None:
            continue
        if step["id"] in seen:
            entry.get("id").note("duplicate", f"two steps are called '{step['id']}'", "rename one of them")
        seen.append(step["id"])
        found.append((entry, step))
    return found


def _once(problems: list[Problem]) -> list[Problem]:
    """A wrong default is seen by everyone who inherits it; say it once."""
    kept: list[Problem] = []
    for problem in problems:
        if problem not in kept:
            kept.append(problem)
    return kept


def _own(value: Any) -> Any:
    """A deep copy: the checked pipeline shares nothing with what was read, nor with itself."""
    if isinstance(value, dict):
        return {key: _own(entry) for key, entry in value.items()}
    return [_own(entry) for entry in value] if isinstance(value, list) else value
