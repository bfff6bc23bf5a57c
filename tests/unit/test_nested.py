"""Sub-pipelines: a pipeline as a step of another one, from files to the steps that take its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenuto.core.budget import worst_case
from tenuto.core.pipeline.check import check
from tenuto.encoding import dumps
from tenuto.knowledge import definitions

CHILD = """\
name: child
params: {target: {default: web}, depth: 1, source: {type: file, required: false}}
switches: {extra: false}
steps:
  - id: build
    agent: {role: worker, focus: "what {params.target} needs", out: built.md}
  - id: look
    when: {all: [extra, {param: depth, more_than: 1}]}
    agent: {role: worker, id: looker, in: built.md, out: look.md, context: [{result: judge}]}
  - id: judge
    agent:
      {role: worker, id: judge, in: built.md, out: judged.md,
       result: {schema: {type: object, properties: {good: {type: boolean}}}}}
    on:
      NEEDS_REVISION: {route: [build], at_most: 2}
"""
PARENT = """\
name: parent
params: {what: {default: api}, names: {type: list, default: [a, b]}}
steps:
  - id: plan
    agent: {role: worker, id: planner, out: plan.md}
  - id: mend
    pipeline: child
  - id: report
    agent: {role: worker, id: reporter, in: mend/built.md}
"""


def files(root: Path, **texts: str) -> Path:
    folder = root / ".tenuto" / "pipelines"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def whole(root: Path, parent: str = PARENT, child: str = CHILD, **more: str) -> Any:
    files(root, parent=parent, child=child, **more)
    return definitions.load("parent", root)


def refused(root: Path, parent: str, child: str = CHILD, **more: str) -> list[str]:
    """Each problem as file:line:column [code] message."""
    folder = files(root, parent=parent, child=child, **more)
    pipeline, problems = definitions.read(folder / "parent.yaml", root=root)
    assert pipeline is None
    return [definitions.in_words(problem).removeprefix(f"{folder}/") for problem in problems]


def by_id(pipeline: Any) -> dict[str, Any]:
    return {step["id"]: step for step in pipeline["steps"]}


def with_step(words: str) -> str:
    return PARENT.replace("    pipeline: child\n", f"    pipeline: child\n{words}")


def test_the_steps_of_a_sub_pipeline_take_its_place_each_called_after_both(tmp_path: Path) -> None:
    pipeline = whole(tmp_path)
    assert list(by_id(pipeline)) == ["plan", "mend.build", "mend.look", "mend.judge", "mend", "report"]
    steps = by_id(pipeline)
    assert steps["plan"]["on"]["DONE"] == {"do": "go_on", "to": "mend.build", "carry": ""}
    assert steps["mend.judge"]["on"]["DONE"] == {"do": "go_on", "to": "mend", "carry": ""}
    assert steps["mend"]["on"]["DONE"] == {"do": "go_on", "to": "report", "carry": ""}
    assert steps["mend"]["ends"] == "child"


def test_what_takes_its_place_is_a_pipeline_like_any_other(tmp_path: Path) -> None:
    """Checked again it is the same, byte for byte: nothing in it needs the files any more."""
    pipeline = whole(tmp_path, with_step("    on: {ERROR: {route: [plan], at_most: 1}}\n"))
    again, problems = check(pipeline)
    assert problems == [] and dumps(again) == dumps(pipeline)


def test_its_documents_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    steps = by_id(whole(tmp_path))
    assert steps["mend.build"]["agent"]["out"] == ["mend/built.md"]
    assert steps["mend.look"]["agent"]["in"] == ["mend/built.md"]
    shared = by_id(whole(tmp_path, with_step("    documents: .\n").replace("mend/built.md", "built.md")))
    assert shared["mend.build"]["agent"]["out"] == ["built.md"]
    named = by_id(
        whole(tmp_path, with_step("    documents: parts/one\n").replace("mend/built.md", "parts/one/built.md"))
    )
    assert named["mend.build"]["agent"]["out"] == ["parts/one/built.md"]


def test_the_same_pipeline_twice_shares_nothing(tmp_path: Path) -> None:
    parent = PARENT.replace("  - id: report", "  - id: again\n    pipeline: child\n  - id: report")
    pipeline = whole(tmp_path, parent)
    assert worst_case(pipeline, 0)["routes"] == {"mend.judge.NEEDS_REVISION": 2, "again.judge.NEEDS_REVISION": 2}
    assert pipeline["switches"] == {"approval": False, "mend.extra": False, "again.extra": False}


def test_values_are_handed_in_and_its_conditions_ask_about_them(tmp_path: Path) -> None:
    parent = with_step('    params: {target: "{params.what} and more", depth: 3}\n    switches: {extra: true}\n')
    pipeline = whole(tmp_path, parent)
    steps = by_id(pipeline)
    assert steps["mend.build"]["agent"]["focus"] == "what api and more needs"
    assert steps["mend.look"]["when"] == {"all": ["mend.extra", {"param": "mend.depth", "more_than": 1}]}
    assert pipeline["params"]["mend.depth"]["default"] == 3 and pipeline["params"]["mend.depth"]["fixed"] is True
    assert pipeline["switches"]["mend.extra"] is True


def test_a_value_stays_what_it_is_when_it_is_handed_on(tmp_path: Path) -> None:
    """`{params.NAME}` alone is the value itself, a list too."""
    child = CHILD.replace("depth: 1", "depth: 1, parts: list") + (
        "  - id: every\n    each: {param: parts}\n    agent: {role: worker, id: each-one, out: 'p/{item}.md'}\n"
    )
    parent = with_step('    params: {parts: "{params.names}"}\n')
    pipeline = whole(tmp_path, parent, child)
    assert pipeline["params"]["mend.parts"]["default"] == ["a", "b"]
    waves = by_id(pipeline)["mend.every"]["waves"]
    assert waves["each"]["param"] == "mend.parts" and waves["seats"][0]["out"] == ["mend/p/{item}.md"]
    assert worst_case(pipeline, 9, params={"mend.parts": ["a", "b"], "mend.depth": 3})["attempts"] == 1 + 3 * 3 + 2 + 1


def test_a_document_is_handed_in_by_a_parameter_of_type_file(tmp_path: Path) -> None:
    child = CHILD.replace("focus:", 'in: "{params.source}", focus:')
    steps = by_id(whole(tmp_path, with_step("    params: {source: plan.md}\n"), child))
    assert steps["mend.build"]["agent"]["in"] == ["plan.md"]
    (problem,) = refused(tmp_path, with_step("    params: {source: plann.md}\n"), child)
    assert (
        problem.startswith("child.yaml:5:5")
        and "reads 'plann.md', which nothing writes (did you mean 'plan.md'?" in problem
    )


def test_answers_of_a_person_are_handed_in_as_they_are_written(tmp_path: Path) -> None:
    gate = "  - id: agree\n    gate: {fields: {env: {of: [staging, prod]}}}\n  - id: mend\n"
    parent = with_step('    params: {target: "{answers.agree.env}"}\n').replace("  - id: mend\n", gate)
    assert by_id(whole(tmp_path, parent))["mend.build"]["agent"]["focus"] == "what {answers.agree.env} needs"
    asked = CHILD.replace("{param: depth, more_than: 1}", "{param: target, is: prod}")
    (problem,) = refused(tmp_path, parent, asked)
    assert "'child' asks about 'target' before the run can know it" in problem and problem.startswith(
        "parent.yaml:10:14"
    )


def test_where_it_would_fail_the_run_the_steps_own_error_follows_with_one_counter(tmp_path: Path) -> None:
    steps = by_id(whole(tmp_path, with_step("    on: {ERROR: {route: [plan], at_most: 2, then: {pause: no}}}\n")))
    for name in ("mend.build", "mend.judge"):
        route = steps[name]["on"]["ERROR"]
        assert route["counter"] == "mend.ERROR" and route["then"]["reason"] == "no"
        assert [leg["step"] for leg in route["route"]][:: len(route["route"]) - 1] == ["plan", name]
    assert steps["mend.judge"]["on"]["NEEDS_REVISION"]["then"]["counter"] == "mend.ERROR"
    assert worst_case(whole(tmp_path), 0)["routes"] == {"mend.judge.NEEDS_REVISION": 2}


def test_a_sub_pipeline_that_fails_may_be_done_again_from_its_beginning(tmp_path: Path) -> None:
    """Each of its steps goes back to the first one, and comes to itself again; one counter for all of them."""
    steps = by_id(whole(tmp_path, with_step("    on: {ERROR: {route: [mend], at_most: 1}}\n")))
    ways = {name: steps[f"mend.{name}"]["on"]["ERROR"] for name in ("build", "look", "judge")}
    assert {name: [leg["step"] for leg in way["route"]] for name, way in ways.items()} == {
        "build": ["mend.build"],
        "look": ["mend.build", "mend.look"],
        "judge": ["mend.build", "mend.look", "mend.judge"],
    }
    assert {way["counter"] for way in ways.values()} == {"mend.ERROR"}


def test_without_one_a_failing_step_of_it_fails_the_run(tmp_path: Path) -> None:
    assert by_id(whole(tmp_path))["mend.build"]["on"]["ERROR"] == {"do": "fail", "reason": ""}


def test_a_condition_that_holds_for_the_whole_run_is_asked_at_each_step(tmp_path: Path) -> None:
    parent = with_step("    when: {param: what, is: api}\n")
    pipeline = whole(tmp_path, parent)
    assert by_id(pipeline)["mend.build"]["when"] == {"param": "what", "is": "api"}
    assert by_id(pipeline)["mend.look"]["when"]["all"][0] == {"param": "what", "is": "api"}
    assert worst_case(pipeline, 0, {}, params={"what": "other", "mend.depth": 1})["attempts"] == 2  # type: ignore[arg-type]


def test_a_condition_that_may_change_is_asked_once_before_its_first_step(tmp_path: Path) -> None:
    """Its own first step may write what is asked about; the others must run all the same."""
    pipeline = whole(tmp_path, with_step("    when: {not: {exists: mend/built.md}}\n"))
    steps = by_id(pipeline)
    assert steps["mend.begin"]["when"] == {"not": {"exists": "mend/built.md"}}
    assert steps["mend.build"]["when"] == {"outcome": "mend.begin", "is": "DONE"}
    assert steps["mend"]["when"] == {"outcome": "mend.begin", "is": "DONE"}


def test_a_route_a_way_forward_and_a_condition_may_name_the_whole(tmp_path: Path) -> None:
    parent = PARENT.replace("out: plan.md}\n", "out: plan.md}\n    on: {ERROR: {go_on: mend}}\n") + (
        "    when: {all: [{outcome: mend, is: DONE}, {result: mend, field: good}]}\n"
        "    on: {NEEDS_REVISION: {route: [mend], at_most: 1}}\n"
    )
    steps = by_id(whole(tmp_path, parent))
    assert steps["plan"]["on"]["ERROR"]["to"] == "mend.build"
    legs = [leg["step"] for leg in steps["report"]["on"]["NEEDS_REVISION"]["route"]]
    assert legs == ["mend.build", "mend.look", "mend.judge", "mend", "report"]
    assert steps["report"]["when"]["all"][1] == {"result": "mend.judge", "field": "good", "is": True}


def test_pipelines_nest_and_names_grow(tmp_path: Path) -> None:
    inner = '  - id: in\n    pipeline: child\n    params: {target: "{params.of}", depth: 4}\n'
    middle = f"name: middle\nparams: {{of: {{default: x}}}}\nsteps:\n{inner}"
    parent = PARENT.replace("pipeline: child", "pipeline: middle\n    params: {of: db}").replace(
        "mend/built", "mend/in/built"
    )
    pipeline = whole(tmp_path, parent, middle=middle)
    steps = by_id(pipeline)
    assert list(steps)[1:6] == ["mend.in.build", "mend.in.look", "mend.in.judge", "mend.in", "mend"]
    assert steps["mend.in.build"]["agent"]["focus"] == "what db needs"
    assert steps["mend.in.build"]["agent"]["out"] == ["mend/in/built.md"]
    assert pipeline["params"]["mend.in.depth"]["default"] == 4


def test_only_a_route_leads_to_one_that_is_aside(tmp_path: Path) -> None:
    parent = with_step("    aside: true\n").replace("in: mend/built.md}", "if_present: mend/built.md}")
    parent += "    on: {NEEDS_REVISION: {route: [mend], at_most: 1}}\n"
    steps = by_id(whole(tmp_path, parent))
    assert steps["plan"]["on"]["DONE"]["to"] == "report"
    legs = [leg["step"] for leg in steps["report"]["on"]["NEEDS_REVISION"]["route"]]
    assert legs == ["mend.build", "mend.look", "mend.judge", "mend", "report"]


def test_for_every_element_its_agents_and_commands_work_in_turn(tmp_path: Path) -> None:
    child = (
        "name: child\nparams: {file: {default: x}}\nsteps:\n"
        "  - id: count\n    command: {run: [wc, '{params.file}'], stdout: count.txt}\n"
        "  - id: judge\n    agent: {role: worker, in: count.txt, out: judged.md}\n"
    )
    parent = PARENT.replace(
        "pipeline: child", 'each: {param: names, cap: 1}\n    pipeline: child\n    params: {file: "{each.value}"}'
    )
    parent = parent.replace("in: mend/built.md", "in: mend/*/judged.md")
    step = by_id(whole(tmp_path, parent, child))["mend"]
    waves = step["waves"]
    assert (waves["per_item"], waves["at_once"], waves["each"]["param"]) == ("in-turn", 1, "names")
    assert [seat["id"] for seat in waves["seats"]] == ["count", "judge"]
    assert waves["seats"][0]["command"]["run"] == ["wc", "{each.value}"]
    assert waves["seats"][1]["in"] == ["mend/{item}/count.txt"] and waves["seats"][1]["out"] == [
        "mend/{item}/judged.md"
    ]


MIDDLE = "name: middle\nsteps:\n  - id: x\n    pipeline: {}\n"
WRONG: list[tuple[str, str, str]] = [
    ("    params: {targt: web}\n", "parent.yaml:8:14", "'child' has no parameter 'targt' (did you mean 'target'?)"),
    ("    params: {depth: deep}\n", "parent.yaml:8:14", "'depth' of 'child': a number is needed, not the text 'deep'"),
    ("    params: [web]\n", "parent.yaml:8:5", "params must be a mapping"),
    ("    switches: {exta: true}\n", "parent.yaml:8:16", "'child' has no switch 'exta' (did you mean 'extra'?)"),
    ("    documents: ../up\n", "parent.yaml:8:5", "the folder of its documents '../up' cannot be used"),
    ("    retry: {ERROR: 1}\n", "parent.yaml:8:5", "a step with pipeline has no key 'retry'"),
    ("    on: {NEEDS_REVISION: pause}\n", "parent.yaml:8:10", "has no key 'NEEDS_REVISION'"),
    (
        "    on: {ERROR: {route: [plann], at_most: 1}}\n",
        "parent.yaml:8:26",
        "there is no step 'plann' (did you mean 'plan'?)",
    ),
    ("    on: {ERROR: {route: [plan]}}\n", "parent.yaml:8:10", "this route has no bound"),
    ("    when: {param: wat, is: x}\n", "parent.yaml:8:12", "there is no parameter 'wat' (did you mean 'what'?)"),
    ("    aside: true\n    on: {ERROR: pause}\n", "parent.yaml:9:5", "aside has nothing that follows its ERROR"),
]


@pytest.mark.parametrize("words, place, message", WRONG)
def test_what_is_wrong_is_named_where_it_was_written(tmp_path: Path, words: str, place: str, message: str) -> None:
    found = refused(tmp_path, with_step(words))
    assert any(problem.startswith(place) and message in problem for problem in found), found


def test_a_pipeline_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, PARENT.replace("pipeline: child", "pipeline: chld"))
    assert problem.startswith("parent.yaml:7:5: [no-pipeline] there is no pipeline 'chld'") and "child" in problem


def test_what_is_wrong_in_a_sub_pipeline_is_named_in_its_own_file(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, PARENT, CHILD.replace("route: [build]", "route: [bild]"))
    assert problem.startswith("child.yaml:15:32: [unknown-step] there is no step 'bild' (did you mean 'build'?)")


def test_a_missing_value_is_named_with_what_it_is(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, PARENT, CHILD.replace("target: {default: web}", "target: {of: [web, api]}"))
    assert (
        problem.startswith("parent.yaml:6:5: [missing] 'child' needs the parameter 'target'")
        and "one of web, api" in problem
    )


@pytest.mark.parametrize("way", [["parent"], ["middle", "parent"], ["middle", "middle"]])
def test_no_pipeline_leads_back_to_itself(tmp_path: Path, way: list[str]) -> None:
    parent = PARENT.replace("pipeline: child", f"pipeline: {way[0]}")
    found = refused(tmp_path, parent, middle=MIDDLE.format(way[-1]))
    assert any("[recursion]" in problem and "leads back to itself" in problem for problem in found)


def test_they_nest_four_deep_and_no_deeper(tmp_path: Path) -> None:
    chain = {f"p{n}": f"name: p{n}\nsteps:\n  - id: s\n    pipeline: p{n + 1}\n" for n in range(3)}
    chain["p2"] = "name: p2\nsteps: [{id: s, agent: worker}]\n"
    parent = PARENT.replace("pipeline: child", "pipeline: p0").replace(
        "{role: worker, id: reporter, in: mend/built.md}", "worker"
    )
    assert "mend.s.s.s" in by_id(whole(tmp_path, parent, **chain))
    chain["p2"] = "name: p2\nsteps: [{id: s, pipeline: child}]\n"
    (problem,) = refused(tmp_path, parent, **chain)
    assert "[too-deep]" in problem


def test_a_thousand_steps_are_refused_before_they_are_made(tmp_path: Path) -> None:
    """Each of three files is small; together they would be millions of steps."""
    many = "".join(f"  - {{id: s{n}, agent: worker}}\n" for n in range(200))
    chain = {"leaf": f"name: leaf\nsteps:\n{many}"}
    for name, inner in (("two", "leaf"), ("one", "two")):
        steps = "".join(f"  - {{id: s{n}, pipeline: {inner}}}\n" for n in range(200))
        chain[name] = f"name: {name}\nsteps:\n{steps}"
    found = refused(tmp_path, PARENT.replace("pipeline: child", "pipeline: one"), **chain)
    assert any("a pipeline has at most 500 steps" in problem for problem in found)


@pytest.mark.parametrize(
    "head, message",
    [
        ("mode: poc\nfinish: poc-complete\n", "belongs to a whole run"),
        ("budget: {attempts: 3}\n", "'child' has a budget, and a run has one only"),
        ("workspace: worktree\n", "'child' works in work trees, and this run does not"),
    ],
)
def test_a_pipeline_that_needs_another_run_than_this_is_refused(tmp_path: Path, head: str, message: str) -> None:
    found = refused(tmp_path, PARENT, CHILD.replace("name: child\n", f"name: child\n{head}"))
    assert any(message in problem and problem.startswith("parent.yaml:7:5") for problem in found), found


@pytest.mark.parametrize(
    "more, message",
    [
        ("  - id: agree\n    gate: {}\n", "'agree' is a step with gate"),
        ("    when: {exists: x.md}\nexisting: x.md\n", "'judge' has a condition that only the run can answer"),
        ("    on: {NEEDS_REVISION: {route: [build], at_most: 1}}\n", "'judge' leads to a route after NEEDS_REVISION"),
    ],
)
def test_for_every_element_what_cannot_work_in_turn_is_refused(tmp_path: Path, more: str, message: str) -> None:
    child = (
        "name: child\nsteps:\n  - id: build\n    agent: {role: worker, out: b.md}\n"
        "  - id: judge\n    agent: {role: worker, id: j, out: j.md}\n"
    )
    parent = PARENT.replace("pipeline: child", "each: {param: names}\n    pipeline: child").replace(
        ", in: mend/built.md", ""
    )
    found = refused(tmp_path, parent, child + more)
    assert any(message in problem and problem.startswith("parent.yaml:8:5") for problem in found), found


def test_names_that_look_like_those_of_a_sub_pipeline_are_refused(tmp_path: Path) -> None:
    found = refused(tmp_path, PARENT.replace("id: report", "id: mend.report"))
    assert any("the names that begin with 'mend.' are those of its sub-pipeline" in problem for problem in found)


def test_nobody_can_say_otherwise_what_the_pipeline_gives(tmp_path: Path) -> None:
    from tenuto.core.pipeline.params import values
    from tenuto.errors import BadInput

    params = whole(tmp_path, with_step("    params: {depth: 3}\n"))["params"]
    assert values("parent", params, {})["mend.depth"] == 3
    with pytest.raises(BadInput, match=r"'mend.depth' is fixed by the pipeline: it is 3"):
        values("parent", params, {"mend.depth": 4})


def test_one_beside_the_definition_wins_over_a_shipped_one(tmp_path: Path) -> None:
    parent = PARENT.replace("pipeline: child", "pipeline: quick").replace(", in: mend/built.md", "")
    assert "mend.review" in by_id(whole(tmp_path, parent))
    own = "name: quick\nsteps: [{id: only, agent: worker}]\n"
    assert "mend.only" in by_id(whole(tmp_path, parent, quick=own))
