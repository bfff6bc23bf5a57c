"""What takes the place of a step with `pipeline` is what its author could have written there by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tenuto.core.pipeline import nested
from tenuto.core.pipeline.check import check
from tenuto.core.pipeline.values import View

SCHEMA = {
    "type": "object",
    "properties": {"xs": {"type": "array", "items": {"type": "string"}}, "good": {"type": "boolean"}},
}


def every_kind(own: str = "", at: str = "", source: str = "plan.md", target: str = "web") -> list[dict[str, Any]]:
    """A step of each kind, with everything that names something. `own`: what ids begin with; `at`: where documents
    lie."""
    return [
        {
            "id": f"{own}ask",
            "gate": {"name": f"{own}agree", "prompt": "Go?", "show": [source], "fields": {"env": {"of": ["a", "b"]}}},
        },
        {
            "id": f"{own}work",
            "budget": {"attempts": 9, "attempt_tokens": 5},
            "agent": {
                "role": "w",
                "focus": f"{target} in {{answers.{own}ask.env}}",
                "task": f"to {{answers.{own}ask.env}}",
                "in": source,
                "if_present": f"{at}b.md",
                "out": [f"{at}w.md"],
                "optional": f"{at}log.md",
                "append_only": f"{at}log.md",
                "touches": f"src/{target}/**",
                "context": ["git-diff", {"answers": f"{own}ask"}],
                "result": {"schema": SCHEMA, "file": f"{at}r.json"},
            },
            "modes": {"again": {"focus": f"again, {target}"}},
            "retry": {"ERROR": 1},
        },
        {
            "id": f"{own}team",
            "when": {
                "all": [
                    {"switch": f"{own}deep"},
                    {"any": [{"exists": f"{at}x.md"}, {"changed": "src/**"}, f"{own}deep"]},
                    {"not": {"outcome": f"{own}work", "is": "ERROR"}},
                    {"result": f"{own}work", "field": "good"},
                    {"answer": f"{own}ask.env", "in": ["a"]},
                    {"param": f"{own}target", "is": "web"},
                ]
            },
            "cluster": {
                "first": {"role": "f", "out": f"{at}f.md"},
                "members": ["a", {"role": "b", "when": {"answer": f"{own}ask.env", "is": "a"}, "out": f"{at}b.md"}],
            },
            "aggregate": {"role": "c", "in": f"{at}b.md", "out": f"{at}c.md"},
        },
        {
            "id": f"{own}each",
            "each": {"result": f"{own}work", "field": "xs", "when": {"element": "value", "is": target}},
            "command": {
                "run": ["echo", "{each.value}", f"{{answers.{own}ask.env}}"],
                "env": {"A": f"{target} {{each.value}}"},
                "stdout": f"{at}o-{{item}}.txt",
            },
        },
        {"id": f"{own}files", "each": {"files": f"src/{target}/*"}, "agent": "w"},
        {"id": f"{own}list", "each": {"param": f"{own}names"}, "agent": "w"},
        {"id": f"{own}lines", "each": {"lines": {"run": ["ls", target], "stdout": f"{at}ls.txt"}}, "agent": "w"},
        {"id": f"{own}table", "each": {"table": f"{at}w.md"}, "agent": "w"},
        {
            "id": f"{own}plan",
            "waves": {"plan": f"{at}c.md", "items": f"{at}o-{{item}}.txt", "record": f"{at}rec.json", "roles": ["w"]},
            "on": {
                "NEEDS_REVISION": {
                    "route": [f"{own}work"],
                    "at_most": 2,
                    "counter": f"{own}mine",
                    "with": f"{at}c.md",
                    "when": {"outcome": f"{own}team", "is": "DONE"},
                    "otherwise": {"go_on": f"{own}last"},
                    "then": {"route": [f"{own}plan"], "at_most": 1, "resets": [f"{own}mine"], "then": "pause"},
                },
                "ERROR": "block",
            },
        },
        {"id": f"{own}last", "agent": {"role": "w", "in": f"{at}w.md"}, "evidence_for_next": []},
    ]


PARAMS: Any = {
    "target": {"default": "web"},
    "names": {"type": "list", "default": ["x"]},
    "source": {"type": "file", "default": "plan.md"},
}
CHILD: Any = {
    "name": "child",
    "params": PARAMS,
    "switches": {"deep": False},
    "existing": ["the-document-source-of-the-run"],
    "budget": {"attempt_tokens": 3, "attempt_micro_usd": 4},
}


def pipeline(raw: Any) -> Any:
    checked, problems = check(copy.deepcopy(raw))
    assert checked is not None, problems
    return checked


def embedded(step: Any, child: Any = CHILD, steps: Any = None, parent: Any = None) -> tuple[Any, list[Any]]:
    """What takes the step's place, and what is wrong with that."""
    problems: Any = []
    view = View(step, ("steps", 1), problems)
    read = pipeline({**child, "steps": steps or every_kind(source="the-document-source-of-the-run")})
    given = nested.handed_in(view, "child", read["params"])
    return nested.embed(view, read, given, 2, View(parent or {}, (), problems)), problems


def problem_of(step: Any, child: Any = CHILD, steps: Any = None, parent: Any = None) -> tuple[list[Any], str, str]:
    _, (problem,) = embedded({"id": "sub", "pipeline": "child", **step}, child, steps, parent)
    return list(problem["path"][2:]), problem["message"], problem["hint"]


def test_every_name_in_it_is_what_one_would_have_written_by_hand() -> None:
    found, problems = embedded({"id": "sub", "pipeline": "child"})
    assert problems == []
    before = {"id": "before", "agent": {"role": "w", "out": "plan.md"}}
    kept = {"fixed": True, "required": False}
    params = {
        "sub.target": {"type": "text", "default": "web", **kept},
        "sub.names": {"type": "list", "default": ["x"], **kept},
    }
    hand = every_kind("sub.", "sub/")
    by_hand: Any = pipeline(
        {
            "name": "whole",
            "params": params,
            "switches": {"sub.deep": False},
            "steps": [before, *({**one, "phase": 2} for one in hand), {"id": "sub", "action": [], "phase": 2}],
        }
    )
    whole = pipeline(
        {
            "name": "whole",
            "params": found["params"],
            "switches": found["switches"],
            "steps": [before, *(part["step"] for part in found["parts"])],
        }
    )
    assert whole["params"] == by_hand["params"] and whole["switches"] == by_hand["switches"]
    for mine, own in zip(whole["steps"][1:], by_hand["steps"][1:], strict=True):
        if own["id"] != "sub":  # the pipeline's own, where the step says nothing
            tokens = own["budget"]["attempt_tokens"] or 3
            own["budget"] = {**own["budget"], "attempt_tokens": tokens, "attempt_micro_usd": 4}
        differ = {key for key in {*mine, *own} if mine.get(key) != own.get(key)} - {"number", "name", "ends"}
        assert not differ, (mine["id"], [(mine.get(key), own.get(key)) for key in differ])
    assert [part["of"] for part in found["parts"]] == [*range(10), None]
    assert [part["step"]["number"] for part in found["parts"]][:2] == ["2.1", "2.2"]
    assert found["parts"][-1]["step"]["name"] == "Sub"


SMALL: Any = [{"id": "a", "agent": {"role": "w"}}]


@pytest.mark.parametrize(
    ("step", "path", "message", "hint"),
    [
        ({"params": ["x"]}, ["params"], "params must be a mapping", "for example {target: web}"),
        ({"params": {"targt": "x"}}, ["params", "targt"], "'child' has no parameter 'targt'", "did you mean 'target'?"),
        ({"params": {"names": "x"}}, ["params", "names"], "'names' of 'child': a list of text is needed", ""),
        ({"switches": ["deep"]}, ["switches"], "switches must be a mapping", "for example {tests: true}"),
        ({"switches": {"dep": True}}, ["switches", "dep"], "has no switch 'dep'", "did you mean 'deep'?"),
        ({"switches": {"approval": True}}, ["switches", "approval"], "has no switch 'approval'", "known: deep"),
        ({"switches": {"deep": "x"}}, ["switches", "deep"], "the switch deep must be true or false", ""),
        ({"on": {"NEEDS_REVISION": "fail"}}, ["on", "NEEDS_REVISION"], "has no key 'NEEDS_REVISION'", "known: DONE"),
        (
            {"on": {"ERROR": "fail", "NOT_DONE": "fail"}},
            ["on", "NOT_DONE"],
            "`on` has NOT_DONE and also ERROR",
            "keep one of them",
        ),
        ({"aside": True, "on": {"ERROR": "fail"}}, ["on"], "that is aside has nothing that follows its ERROR", "let"),
        ({"aside": True, "on": {"NOT_DONE": "fail"}}, ["on"], "that is aside has nothing that follows its", "let"),
        ({"id": ""}, [], "a step needs an id", "for example id: research"),
        ({"id": 3}, [], "a step needs an id", "for example id: research"),
        ({"color": 1}, ["color"], "a step with pipeline has no key 'color'", "known"),
    ],
)
def test_what_is_wrong_in_the_step_that_names_it(step: Any, path: list[str], message: str, hint: str) -> None:
    found = problem_of(step, steps=SMALL)
    assert found[0] == path and message in found[1] and hint in found[2]


@pytest.mark.parametrize(
    ("child", "message", "hint"),
    [
        ({"mode": "poc"}, "'child' has mode: poc, and that belongs to a whole run", "name another pipeline"),
        ({"budget": {"tokens": 9}}, "'child' has a budget, and a run has one only", "say it in the pipeline"),
        (
            {"memory": "run", "shown_as": "feature_docs"},
            "'child' keeps a memory for its run, and this one keeps none",
            "memory: run",
        ),
        ({"workspace": "worktree"}, "'child' works in work trees, and this run does not", "workspace: worktree"),
        ({"switches": {}}, None, ""),
    ],
)
def test_what_belongs_to_a_whole_run_is_refused(child: Any, message: str | None, hint: str) -> None:
    step = {"id": "sub", "pipeline": "child"}
    _, problems = embedded(step, {**CHILD, **child}, SMALL)
    # A pipeline that ends as graduated says so in its last step, too.
    assert [one for one in problems if message is None or message in one["message"]] == problems[:1]
    assert all(hint in one["hint"] and one["code"] == "contradiction" for one in problems[:1])
    agreed = {"memory": "run", "workspace": "worktree"}
    if any(word in child for word in agreed):
        assert embedded(step, {**CHILD, **child}, SMALL, agreed)[1] == []


def test_a_pipeline_without_switches_has_none_to_name() -> None:
    child = {**CHILD, "switches": {}}
    assert problem_of({"switches": {"deep": True}}, child, SMALL)[1:] == ("'child' has no switch 'deep'", "it has none")


def test_its_author_s_stage_and_phase_are_those_of_the_step() -> None:
    step = {"id": "sub", "pipeline": "child", "stage": "S", "phase": 3, "type": "t", "number": "7", "name": "Whole"}
    found, problems = embedded({**step, "after": ["record-debt"], "before": ["write-request"]}, steps=SMALL)
    assert problems == []
    first, own, last = (part["step"] for part in found["parts"])
    assert (first["id"], first["stage"], first["name"], first["before"]) == (
        "sub.begin",
        "S",
        "Whole: begins",
        ["write-request"],
    )
    assert (own["stage"], own["number"], own["phase"], first["phase"]) == ("S", "7.1", 3, 3)
    assert (last["stage"], last["phase"], last["type"], last["after"]) == ("S", 3, "t", ["record-debt"])
    assert (last["number"], last["name"], last["ends"]) == ("7", "Whole", "child")


@pytest.mark.parametrize(
    ("when", "is_asked_once"),
    [
        ("on", False),
        ({"param": "depth", "more_than": 2}, False),
        ({"all": ["on", {"not": {"switch": "off"}}]}, False),
        ({"any": ["on", {"exists": "x.md"}]}, True),
        ({"not": {"outcome": "before", "is": "DONE"}}, True),
        ({"result": "before", "field": "x"}, True),
        ({"answer": "g.ok"}, True),
        ("always", None),
        (None, None),
    ],
)
def test_a_condition_about_the_run_as_a_whole_is_asked_at_each_step(when: Any, is_asked_once: bool | None) -> None:
    found, problems = embedded({"id": "sub", "pipeline": "child", "when": when}, steps=SMALL)
    assert problems == []
    own, last = (part["step"] for part in found["parts"][-2:])
    if is_asked_once is None:
        assert [part["step"]["id"] for part in found["parts"]] == ["sub.a", "sub"]
        assert own["when"] == "always" and "when" not in last
    elif is_asked_once:
        assert found["parts"][0]["step"]["id"] == "sub.begin" and found["parts"][0]["step"]["when"] == when
        assert own["when"] == last["when"] == {"outcome": "sub.begin", "is": "DONE"}
    else:
        assert [part["step"]["id"] for part in found["parts"]] == ["sub.a", "sub"]
        assert own["when"] == last["when"] == when
    assert [("when",) in part["borrowed"] for part in found["parts"]] == [
        part["of"] is not None and is_asked_once is not None for part in found["parts"]
    ]


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"cluster": ["a", "b"]}, "is a step with cluster"),
        ({"gate": {}}, "is a step with gate"),
        ({"agent": "w", "when": {"exists": "x.md"}}, "has a condition that only the run can answer"),
        ({"agent": "w", "modes": {"m": {"focus": "x"}}}, "has modes, or a rule of its own"),
        ({"agent": "w", "rule": "audit"}, "has modes, or a rule of its own"),
        ({"agent": "w", "before": ["prune-memory"]}, "has actions of the engine before or after it"),
        ({"agent": "w", "after": ["prune-memory"]}, "has actions of the engine before or after it"),
        ({"agent": "w", "on": {"NEEDS_REVISION": "fail", "ERROR": "pause"}}, "leads to a pause after ERROR"),
    ],
)
def test_what_cannot_be_done_for_every_element_is_named(step: Any, problem: str) -> None:
    found = problem_of({"each": {"files": "*"}}, steps=[{"id": "a", **step}, {"id": "z", "agent": "w"}])
    message = f"'child' cannot be done for every element: 'a' {problem}"
    assert found == (["pipeline"], message, "its steps must be agents and commands, one after the other")


def test_for_every_element_what_is_switched_off_by_its_values_is_not_there() -> None:
    steps = [
        {"id": "a", "agent": "w", "when": {"param": "target", "is": "api"}},
        {"id": "b", "agent": "w", "when": {"param": "target", "is": "web"}},
        {"id": "c", "command": ["echo", "{params.target}"]},
    ]
    step = {"id": "sub", "pipeline": "child", "each": {"files": "*"}, "cap": 2, "switches": {}, "documents": "x/{item}"}
    problems: Any = embedded({**step, "cap": None}, steps=steps[:2])[1]
    assert [one["code"] for one in problems] == ["unknown-key"]
    step.pop("cap")
    found, problems = embedded(step, steps=steps[:2])
    assert problems == []
    (part,) = found["parts"]
    assert [seat["id"] for seat in part["step"]["in_turn"]] == ["b"]
    assert set(part["step"]) == {"id", "each", "in_turn"} and part["borrowed"] == {("in_turn",): ("pipeline",)}
