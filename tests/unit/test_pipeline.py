"""A pipeline is checked before anything starts: what is refused, what is filled in, what stays."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tenuto.core.pipeline.check import check, stage_gates


def pipeline(*steps: Any, **top: Any) -> dict[str, Any]:
    return {"name": "trial", "steps": list(steps), **top}


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "agent": {"role": "worker", "out": f"{name}.md"}, **more}


def checked(raw: Any, **kw: Any) -> Any:
    found, problems = check(raw, **kw)
    assert problems == []
    return found


def codes(raw: Any, **kw: Any) -> list[str]:
    found, problems = check(raw, **kw)
    assert (found is None) == bool(problems)
    return [problem["code"] for problem in problems]


TWO = pipeline(agent("first"), agent("second"))


def test_steps_follow_each_other_in_the_order_written_and_the_last_one_ends_the_run() -> None:
    """Nothing else has to know the order: `on` names what follows."""
    first, second = checked(TWO)["steps"]
    assert first["on"]["DONE"] == {"do": "go_on", "to": "second", "carry": ""}
    assert second["on"]["DONE"] == {"do": "finish", "as": "completed"}
    assert first["on"]["ERROR"] == first["on"]["NEEDS_REVISION"] == {"do": "fail", "reason": ""}


def test_checking_a_checked_pipeline_changes_nothing() -> None:
    once = checked(TWO)
    assert json.dumps(checked(json.loads(json.dumps(once)))) == json.dumps(once)


def test_what_was_given_is_not_changed() -> None:
    raw = copy.deepcopy(TWO)
    checked(raw)
    assert raw == TWO


def test_an_unknown_key_is_refused_with_its_place_and_the_likely_word() -> None:
    _, problems = check(pipeline({**agent("a"), "evidnce_for_next": []}))
    assert problems == [
        {
            "path": ["steps", 0, "evidnce_for_next"],
            "code": "unknown-key",
            "message": "a step with agent has no key 'evidnce_for_next'",
            "hint": "did you mean 'evidence_for_next'?",
        }
    ]


BACK = {"route": ["first"], "at_most": 1}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("text", "wrong-type"),
        ({"steps": [agent("a")]}, "missing"),
        ({"name": "x"}, "missing"),
        ({"name": "../x", "steps": [agent("a")]}, "bad-id"),
        (pipeline(), "missing"),
        (pipeline("a"), "wrong-type"),
        (pipeline({"id": "a"}), "one-kind"),
        (pipeline({**agent("a"), "gate": {}}), "one-kind"),
        (pipeline({**agent("a"), "id": 1.3}), "wrong-type"),
        (pipeline(agent("a"), agent("a")), "duplicate"),
        ({**pipeline(agent("a")), "memory": "run"}, "contradiction"),
        (
            {**pipeline(agent("a")), "memory": "run", "shown_as": "feature_docs", "documents": "docs/{slug}"},
            "contradiction",
        ),
        (pipeline({"id": "a", "action": "write-request"}, agent("b")), "contradiction"),
        (pipeline(agent("a"), {"id": "b", "gate": {"name": "x"}}, {"id": "c", "gate": {"name": "x"}}), "duplicate"),
        (pipeline(agent("a", on={"ERROR": {"go_on": "c"}}), {"id": "b", "gate": {}}, agent("c")), "past-a-gate"),
        (
            pipeline(agent("a", on={"ERROR": {"go_on": "c"}}), {"id": "b", "gate": {"when": "approval"}}, agent("c")),
            "past-a-gate",
        ),
        (pipeline(agent("a"), agent("b", on={"ERROR": {"go_on": "c"}})), "unknown-step"),
        (pipeline(agent("a"), agent("b", on={"ERROR": {"go_on": "a"}})), "backward-go-on"),
        (pipeline(agent("a"), agent("b", on={"ERROR": {"go_on": "b"}})), "backward-go-on"),
        (pipeline(agent("a", on={"ERROR": {"route": ["b"], "at_most": 1}}), agent("b")), "forward-route"),
        (pipeline(agent("a"), agent("b", on={"ERROR": {"route": ["a"]}})), "unbounded-route"),
        (pipeline(agent("a"), agent("b", on={"ERROR": {"route": ["z"], "at_most": 1}})), "unknown-step"),
        (pipeline(agent("a"), agent("b", on={"ERROR": {"route": [], "at_most": 1}})), "missing"),
        (pipeline(agent("a"), agent("b", on={"ERROR": {"route": ["b", "a"], "at_most": 1}})), "contradiction"),
        (pipeline(agent("a"), agent("b", on={"ERROR": {"at_most": 1}})), "unclear-outcome"),
        (pipeline(agent("a"), agent("b", on={"ERROR": "hold"})), "unknown-value"),
        (pipeline(agent("a"), agent("b", on={"DONE": {"route": ["a"], "at_most": 1}})), "contradiction"),
        (pipeline(agent("a"), agent("b", on={"FINE": "fail"})), "unknown-key"),
        (pipeline(agent("a", on={"ERROR": "fail", "NOT_DONE": "fail"})), "contradiction"),
        (pipeline(agent("a"), agent("b", aside=True)), "unreachable"),
        (pipeline(agent("a", on={"DONE": {"go_on": "c"}}), agent("b"), agent("c")), "unreachable"),
        (pipeline(agent("a"), {"id": "b", "agent": {"role": "worker", "out": "a.md"}}), "shared-output"),
        (pipeline({"id": "a", "agent": {"role": "worker", "out": "../a.md"}}), "bad-path"),
        (pipeline({"id": "a", "agent": {"role": "worker", "out": "/etc/a.md"}}), "bad-path"),
        (pipeline({"id": "a", "agent": {"role": "worker", "out": "c:\\a.md"}}), "bad-path"),
        (pipeline({"id": "a", "agent": {"role": "worker", "out": "{home}/a.md"}}), "bad-path"),
        (pipeline({"id": "a", "agent": {"role": "worker", "in": "nothing.md"}}), "unknown-input"),
        (pipeline({"id": "a", "agent": {"role": "worker", "memory": "forget"}}), "unknown-value"),
        (pipeline({"id": "a", "agent": {"role": "worker", "verdicts": ["DONE"]}}), "contradiction"),
        (pipeline({"id": "a", "agent": {"role": "worker", "retry": {"NEEDS_REVISION": 1}}}), "contradiction"),
        (pipeline({"id": "a", "agent": {"role": "worker", "out": "a.md", "append_only": "b.md"}}), "contradiction"),
        (pipeline({"id": "a", "agent": {"role": "worker"}, "time_limit": "soon"}), "wrong-type"),
        (pipeline({"id": "a", "cluster": {"members": ["x", "y"], "quorum": 3}}), "quorum-too-large"),
        (pipeline({"id": "a", "cluster": {"members": ["x", "x"]}}), "duplicate"),
        (pipeline({"id": "a", "cluster": {"members": []}}), "missing"),
        (pipeline({"id": "a", "cluster": {"members": [{"role": "x", "memory": "write"}]}}), "contradiction"),
        (pipeline({"id": "a", "waves": {"roles": ["x"], "default": "y"}}), "unknown-member"),
        (pipeline({"id": "a", "waves": {}}), "missing"),
        (
            pipeline(agent("p"), {"id": "a", "waves": {"plan": "p.md", "roles": ["x"], "strict": "sometimes"}}),
            "unknown-switch",
        ),
        (pipeline({"id": "a", "gate": {"when": "tests"}}), "unknown-switch"),
        (pipeline({"id": "a", "gate": {"options": ["approve", "reject", "revise"]}}), "contradiction"),
        (pipeline({"id": "a", "gate": {"options": ["approve"]}}), "contradiction"),
        (pipeline({"id": "a", "action": ["dance"]}), "unknown-value"),
        (pipeline(agent("a"), cap=0), "out-of-range"),
        (pipeline(agent("a"), cap="4"), "wrong-type"),
        (pipeline(agent("a"), shown_as="dashboard"), "unknown-value"),
        (pipeline(agent("a"), documents="../x"), "bad-path"),
        (pipeline(agent("a"), finish="poc-complete"), "contradiction"),
        (pipeline(agent("a"), finish="graduated"), "contradiction"),
        (pipeline(agent("a"), language=4), "newer-language"),
        (pipeline({"id": "a", "command": "make test"}), "wrong-type"),
        (pipeline({"id": "a", "command": []}), "wrong-type"),
        (pipeline({"id": "a", "command": [""]}), "wrong-type"),
        (pipeline({"id": "a", "command": ["make", 1.10]}), "wrong-type"),
        (pipeline({"id": "a", "command": ["make", True]}), "wrong-type"),
        (pipeline({"id": "a", "command": {"run": ["make"], "evn": {}}}), "unknown-key"),
        *(
            (pipeline({"id": "a", "command": {"run": ["make"], "env": {name: "x"}}}), "bad-name")
            for name in ("A=B", "A B", "1A", "", "A-B", "Ä", "TENUTO_ATTEMPT")
        ),
        (pipeline({"id": "a", "command": {"run": ["make"], "exits": {"two": "DONE"}}}), "wrong-value"),
        (pipeline({"id": "a", "command": {"run": ["make"], "exits": {"256": "DONE"}}}), "wrong-value"),
        (pipeline({"id": "a", "command": {"run": ["make"], "exits": {"2": "REVISE"}}}), "unknown-value"),
        (pipeline({"id": "a", "command": {"run": ["make"], "stdout": "../x"}}), "bad-path"),
        (pipeline({"id": "a", "command": ["make"], "agent": "worker"}), "one-kind"),
        (pipeline({"id": "a", "agent": {"role": "worker", "command": ["make"]}}), "contradiction"),
        (pipeline({"id": "a", "agent": {"command": ["make"], "focus": "x"}}), "contradiction"),
        (pipeline({"id": "a", "agent": {"command": ["make"], "memory": "write"}}), "contradiction"),
        (pipeline({"id": "a", "agent": {"role": "command"}}), "unknown-role"),
        (pipeline(agent("a", budget={"attempts": 9}), budget={"attempts": 5}), "contradiction"),
        (pipeline(agent("a"), budget={"money": "a lot"}), "wrong-type"),
        (pipeline(agent("a"), budget={"money": 5, "micro_usd": 5}), "contradiction"),
        (pipeline(agent("a", evidence_for_next=["b.md"])), "unknown-evidence"),
        (pipeline(agent("a", stage="X"), agent("b", stage="Y"), agent("c", stage="X")), "split-stage"),
        (pipeline(agent("a", stage="X", on={"ERROR": {"restart": "Y", "at_most": 1}})), "unknown-stage"),
        (pipeline(agent("a", review={"policy": "strict"})), "unknown-setting"),
        (pipeline(agent("a", rule="review")), "contradiction"),
        (
            pipeline(
                agent(
                    "a",
                    on={
                        "NEEDS_REVISION": {"route": ["a"], "at_most": 1, "counter": "x"},
                        "ERROR": {**BACK, "route": ["a"], "at_most": 2, "counter": "x"},
                    },
                )
            ),
            "contradiction",
        ),
        (
            pipeline(agent("a", on={"ERROR": {"route": ["a"], "at_most": 1, "counter": "x", "resets": ["x"]}})),
            "unbounded-route",
        ),
        (
            pipeline(
                agent(
                    "a",
                    on={
                        "ERROR": {"route": ["a"], "at_most": 1, "counter": "x", "resets": ["y"]},
                        "NEEDS_REVISION": {"route": ["a"], "at_most": 1, "counter": "y", "resets": ["x"]},
                    },
                )
            ),
            "unbounded-route",
        ),
    ],
)
def test_a_wrong_pipeline_is_refused_by_name(raw: Any, code: str) -> None:
    assert code in codes(raw)


def test_unknown_roles_and_modes_are_refused_when_the_roles_are_known() -> None:
    assert codes(TWO, roles=["walker"]) == ["unknown-role", "unknown-role"]
    assert codes(TWO, roles=["worker"]) == []
    staged = pipeline({"id": "a", "agent": {"role": "worker", "mode": "nightly"}})
    assert codes(staged, roles={"worker": ["", "daily"]}) == ["unknown-mode"]
    assert codes(staged, roles={"worker": ["", "nightly"]}) == []


def test_every_problem_is_reported_at_once() -> None:
    raw = pipeline({"id": "a", "agent": {"role": "worker", "out": "../a"}, "colour": "red"}, {"id": "b"}, cap=0)
    assert sorted(codes(raw)) == ["bad-path", "one-kind", "out-of-range", "unknown-key"]


def test_a_route_always_ends_with_the_step_that_takes_it() -> None:
    """What lies between is filled in, so that the step decides again."""
    raw = pipeline(
        agent("a"), agent("b"), agent("c"), agent("d", on={"NEEDS_REVISION": {"route": ["b"], "at_most": 2}})
    )
    route = checked(raw)["steps"][3]["on"]["NEEDS_REVISION"]
    assert [leg["step"] for leg in route["route"]] == ["b", "c", "d"]
    assert (route["at_most"], route["counter"], route["with"]) == (2, "d.NEEDS_REVISION", ["d.md"])
    assert route["then"] == {"do": "fail", "reason": ""}


def test_not_done_counts_revisions_and_errors_together() -> None:
    on = checked(pipeline(agent("a"), agent("b", on={"NOT_DONE": {"route": ["a"], "at_most": 3}})))["steps"][1]["on"]
    assert on["NEEDS_REVISION"] == on["ERROR"]
    assert on["ERROR"]["counter"] == "b.NOT_DONE"


def test_a_route_for_one_member_leads_elsewhere_when_another_is_the_reason() -> None:
    raw = pipeline(
        {
            "id": "r",
            "cluster": ["x", "y"],
            "on": {"ERROR": {"because": "x", "route": [{"r": "only x"}], "at_most": 1, "then": "pause"}},
        }
    )
    route = checked(raw)["steps"][0]["on"]["ERROR"]
    assert route["route"] == [{"step": "r", "mode": "", "only": ["x"], "items": ""}]
    assert route["otherwise"] == route["then"] == {"do": "pause", "reason": "", "recommendations": []}


def test_a_mode_says_only_what_differs() -> None:
    raw = pipeline(
        agent("a", modes={"replan": {"out": "again.md"}}),
        agent("b", on={"ERROR": {"route": [{"a": "replan"}, {"a": "mend"}], "at_most": 1}}),
    )
    step = checked(raw)["steps"][0]
    assert step["modes"]["replan"] == {**step["agent"], "mode": "replan", "out": ["again.md"]}
    assert step["modes"]["mend"] == {**step["agent"], "mode": "mend"}


def test_a_gate_is_approved_rejected_or_sent_back_by_a_person_without_bound() -> None:
    raw = pipeline(agent("a"), agent("b"), {"id": "ok", "gate": {"show": ["b.md"], "revise": "a"}})
    gate = checked(raw)["steps"][2]
    assert gate["gate"]["options"] == ["approve", "reject", "revise"]
    assert [leg["step"] for leg in gate["on"]["NEEDS_REVISION"]["route"]] == ["a", "b", "ok"]
    assert gate["on"]["NEEDS_REVISION"]["at_most"] is None
    plain = checked(pipeline(agent("a"), {"id": "ok", "gate": {}}))["steps"][1]
    assert plain["gate"]["options"] == ["approve", "reject"]
    assert "NEEDS_REVISION" not in plain["on"]


def test_a_review_becomes_second_opinion_fixes_restarts_and_a_block() -> None:
    """The review policy is shorthand for routes; the engine knows only routes."""
    raw = pipeline(
        agent("1.1", stage="PLAN"),
        agent("1.2", stage="PLAN"),
        agent(
            "1.3", stage="PLAN", review={"policy": "p", "supplementary": "on-issues", "fix": "1.2", "restart": "PLAN"}
        ),
        settings={"p": {"minBlockSeverity": "MEDIUM", "maxFixAttempts": 7, "maxStageRestarts": 2}},
    )
    step = checked(raw)["steps"][2]
    second = step["on"]["NEEDS_REVISION"]
    fix = second["then"]
    restart = fix["then"]
    assert step["review"] == {"min_block_severity": "MEDIUM"}
    assert (second["counter"], second["at_most"], second["route"][0]["mode"]) == (
        "1.3.supplementary",
        1,
        "supplementary",
    )
    assert (fix["counter"], fix["at_most"], [leg["step"] for leg in fix["route"]]) == ("1.3.fix", 7, ["1.2", "1.3"])
    assert (restart["counter"], restart["at_most"], restart["restart"]) == ("restart.PLAN", 2, "PLAN")
    assert [leg["step"] for leg in restart["route"]] == ["1.1", "1.2", "1.3"]
    assert restart["resets"] == ["1.3.supplementary", "1.3.fix"]
    assert restart["then"]["do"] == "block"


def test_evidence_names_a_file_and_keeps_its_full_path() -> None:
    raw = pipeline(
        {"id": "a", "stage": "ONE", "agent": {"role": "w", "out": "phases/a.md"}, "evidence_for_next": ["a.md"]},
        {"id": "b", "stage": "TWO", "agent": {"role": "w", "out": "phases/b.md"}, "evidence_for_next": ["phases/b.md"]},
    )
    assert stage_gates(checked(raw)) == [
        {"stage": "ONE", "next": "TWO", "required": ["phases/a.md"], "step": "a"},
        {"stage": "TWO", "next": "COMPLETE", "required": ["phases/b.md"], "step": "b"},
    ]


def test_settings_come_from_the_nearest_layer() -> None:
    raw = pipeline(
        {
            "id": "a",
            "retry": {"ERROR": 2},
            "cluster": {"members": ["x", {"role": "y", "retry": {"ERROR": 4}}], "retry": {"ERROR": 3}},
            "aggregate": "z",
        },
        agent("b"),
        defaults={"retry": {"ERROR": 1}, "time_limit": "2m"},
    )
    cluster, single = checked(raw)["steps"]
    assert [seat["retry"]["ERROR"] for seat in cluster["cluster"]["members"]] == [3, 4]
    assert cluster["aggregate"]["retry"]["ERROR"] == 2
    assert (single["agent"]["retry"]["ERROR"], single["agent"]["time_limit"]) == (1, 120)


def test_money_is_kept_as_whole_micro_dollars() -> None:
    for written in ("12.50", 12.5):
        budget = checked(pipeline(agent("a"), budget={"money": written, "wall_clock": "6h"}))["budget"]
        assert (budget["micro_usd"], budget["wall_clock"]) == (12_500_000, 21_600)


def test_a_command_is_written_in_an_agents_place() -> None:
    raw = pipeline(
        {"id": "a", "command": {"run": ["make", "-j", 4], "exits": {"2": "NEEDS_REVISION"}, "stdout": "o.txt"}}
    )
    checked, problems = check(raw)
    assert checked is not None and problems == []
    (step,) = checked["steps"]
    assert step["kind"] == "agent"
    seat = step["agent"]
    assert (seat["id"], seat["role"], seat["verdicts"]) == ("make", "command", ["DONE", "NEEDS_REVISION", "ERROR"])
    assert seat["command"] == {
        "run": ["make", "-j", "4"],
        "env": {},
        "exits": {"2": "NEEDS_REVISION"},
        "stdout": "o.txt",
    }
    assert seat["optional"] == ["o.txt"]
    assert check(checked) == (checked, [])
