"""Seed 002, row by row: every table and rule of the eight-step orchestrator, each test named after its row.

Rules about order are played with made-up answers (no process); rows about files and processes are in
test_seed_002_files.py.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import pytest

from tenuto.core.budget import worst_case
from tenuto.core.pipeline.check import seats
from tenuto.knowledge import definitions
from tests.property.rehearsal import Rehearsal, item

PIPELINE: Any = definitions.load("eight-step")
THREE = [item("1"), item("2"), item("3", "1")]


class Played:
    """A run of the eight steps. `answers`: patterns over attempts (step-visit-agent-try) -> verdict; DONE otherwise."""

    def __init__(self, answers: dict[str, Any] | None = None, items: Any = THREE, **more: Any) -> None:
        self.answers = answers or {}
        self.rehearsal = Rehearsal("eight-step", self.answer, items, **more)
        self.run = self.rehearsal.play()
        self.started = self.rehearsal.dispatched
        self.journal: list[Any] = self.rehearsal.journal

    def answer(self, attempt: Any) -> Any:
        return next(
            (said for pattern, said in self.answers.items() if fnmatchcase(attempt["attempt"], pattern)), "DONE"
        )

    def steps(self) -> list[str]:
        return [visit["step"] for visit in self.run["visits"]]

    def count(self, pattern: str) -> int:
        return sum(1 for name in self.started if fnmatchcase(name, pattern))

    def wave_of(self, *patterns: str) -> list[set[str]]:
        """Which of these were under way together, at each start."""
        flying: set[str] = set()
        seen = []
        for event in self.journal:
            if event["type"] == "AttemptDispatched":
                flying.add(event["attempt"])
                seen.append({name for name in flying if any(fnmatchcase(name, one) for one in patterns)})
            elif event["type"] in ("AttemptFinished", "AttemptLost"):
                flying.discard(event["attempt"])
        return seen

    @property
    def last_line(self) -> str:
        failure = self.run["failure"]
        return f"ERROR: {failure['error']}" if failure else ""


@cache
def all_went_well() -> Played:
    return Played()


ON_THE_WAY = [
    "setup",
    "research",
    "synthesis",
    "spec",
    "design",
    "design-review",
    "planning",
    "implementation",
    "verification",
    "review",
]


def seat(role: str, mode: str = "") -> Any:
    return next(one for step in PIPELINE["steps"] for one in seats(step) if (one["role"], one["mode"]) == (role, mode))


# ---- cluster dispatch patterns -------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["research", "design-review", "review"])
def test_pattern_a_dispatches_four_at_once_and_waits_for_all(step: str) -> None:
    played = all_went_well()
    assert max(len(group) for group in played.wave_of(f"{step}-1-*")) == 4
    last = {
        "research": "synthesis-1-researcher-1",
        "design-review": "design-review-1-ct-aggregator-1",
        "review": "review-1-r-aggregator-1",
    }[step]
    ended = [event["attempt"] for event in played.journal if event["type"] == "AttemptFinished"]
    members = [name for name in played.started if name.startswith(f"{step}-1-") and name != last]
    begun = next(n for n, e in enumerate(played.journal) if e["type"] == "AttemptDispatched" and e["attempt"] == last)
    assert all(
        any(e["type"] == "AttemptFinished" and e["attempt"] == name for e in played.journal[:begun]) for name in members
    )
    assert set(members) <= set(ended)


@pytest.mark.parametrize("step", ["research", "design-review", "review"])
def test_pattern_a_retries_errors_once(step: str) -> None:
    role = {"research": "researcher-impact", "design-review": "ct-strategy", "review": "r-quality"}[step]
    played = Played({f"{step}-1-{role}-1": "ERROR"})
    assert played.count(f"{step}-1-{role}-*") == 2 and played.run["status"] == "completed"


@pytest.mark.parametrize("step", ["research", "design-review"])
def test_pattern_a_with_two_outputs_goes_on_to_the_aggregator(step: str) -> None:
    failing = {
        "research": ("researcher-impact", "researcher-patterns"),
        "design-review": ("ct-security", "ct-strategy"),
    }[step]
    played = Played({f"{step}-1-{role}-*": "ERROR" for role in failing})
    assert played.run["status"] == "completed"


@pytest.mark.parametrize("step", ["research", "design-review"])
def test_pattern_a_with_fewer_than_two_outputs_is_an_error_and_no_aggregator_is_dispatched(step: str) -> None:
    failing = {"research": "researcher-[!a]*", "design-review": "ct-s*"}[step]
    played = Played({f"{step}-1-{failing}": "ERROR"})
    assert played.run["status"] == "failed" and "fewer than 2 outputs" in played.last_line
    assert (
        not played.count("synthesis-*") if step == "research" else not played.count("design-review-1-ct-aggregator-*")
    )


def test_pattern_b_dispatches_the_gate_agent_first_and_the_rest_on_its_done() -> None:
    played = all_went_well()
    mine = [name for name in played.started if name.startswith("verification-1-")]
    assert mine[0] == "verification-1-v-build-1" and mine[-1] == "verification-1-v-aggregator-1"
    assert {"verification-1-v-build-1"} in played.wave_of("verification-1-*")
    assert {"verification-1-v-tests-1", "verification-1-v-tasks-1", "verification-1-v-feature-1"} in played.wave_of(
        "verification-1-*"
    )


def test_pattern_b_on_gate_error_skips_the_parallel_group_and_forwards_to_the_aggregator() -> None:
    played = Played({"verification-1-v-build-*": "ERROR"})
    assert played.count("verification-1-v-build-*") == 2
    assert not played.count("verification-1-v-t*") and not played.count("verification-1-v-feature-*")
    assert played.count("verification-1-v-aggregator-1") == 1
    assert played.steps().count("planning") == 2  # build ERROR makes the cluster ERROR: replan


@pytest.mark.parametrize("word", ["NEEDS_REVISION", "ERROR"])
def test_pattern_c_replans_at_most_three_times_and_then_proceeds_with_findings(word: str) -> None:
    played = Played({"verification-*-v-aggregator-*": word})
    assert played.steps() == [
        *ON_THE_WAY[:-1],
        *(["planning", "implementation", "verification"] * 3),
        "review",
    ]
    assert played.run["status"] == "completed" and list(played.run["routes"].values()) == [3]


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_pattern_c_ends_with_the_first_done(rounds: int) -> None:
    answers = {f"verification-{n}-v-aggregator-1": "NEEDS_REVISION" for n in range(1, rounds + 1)}
    assert Played(answers).steps().count("verification") == rounds + 1


@pytest.mark.parametrize(
    ("finding", "again"),
    [("task 2 has no test", ["2", "3"]), ("the build is slow", ["3"]), ("", ["3"])],
)
def test_pattern_c_executes_fix_tasks_and_unchanged_done_ones_do_not_run_again(finding: str, again: list[str]) -> None:
    """Item 3 failed. An item that is done runs again where a finding names it, and not where a finding names nobody."""
    answers = {"implementation-1-implementer.3-1": "ERROR", "verification-1-v-aggregator-1": "NEEDS_REVISION"}
    played = Played(answers, findings=[{"text": finding}] if finding else [])
    assert [name.split(".")[1][0] for name in played.started if name.startswith("implementation-2-")] == again


def test_pattern_c_gives_the_planner_verifier_md_in_replan_mode() -> None:
    played = Played({"verification-1-v-aggregator-*": "NEEDS_REVISION"})
    legs = [e["leg"] for e in played.journal if e["type"] == "StepStarted" and e["step"] == "planning"]
    assert (legs[1]["mode"], legs[1]["findings"]) == ("replan", ["verifier.md"])


# ---- both retry budgets --------------------------------------------------------------------------------


def test_an_agent_is_started_at_most_six_times_three_inside_an_attempt_times_two_attempts() -> None:
    for role, mode in (
        ("spec", ""),
        ("designer", ""),
        ("ct-security", ""),
        ("researcher", "synthesis"),
        ("v-build", ""),
    ):
        one = seat(role, mode)
        assert (1 + one["transient"]) * (1 + one["retry"]["ERROR"]) == 6


def test_the_six_starts_are_counted_in_the_worst_case() -> None:
    spec = next(one for one in worst_case(PIPELINE, 3)["steps"] if one["step"] == "spec")
    assert (spec["attempts"], spec["starts"]) == (2, 6)


@pytest.mark.parametrize(
    "name",
    [
        "research-1-researcher-impact",
        "spec-1-spec",
        "design-review-1-ct-aggregator",
        "planning-1-planner",
        "implementation-1-implementer.1",
        "verification-1-v-build",
        "verification-1-v-aggregator",
        "review-1-r-aggregator",
    ],
)
def test_an_attempt_whose_outcome_nobody_knows_is_made_once_more(name: str) -> None:
    """A power cut is nobody's verdict: wherever an ERROR is made again, or the step says so, the run goes on."""
    played = Played({f"{name}-1": "LOST"})
    assert played.count(f"{name}-*") == 2 and played.run["status"] == "completed"
    assert not played.run["routes"], "no way back was used up for it"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("LOST", "LOST"), "paused"),
        (("LOST", "ERROR"), "paused"),
        (("ERROR", "LOST"), "paused"),
        (("ERROR", "ERROR"), "failed"),
    ],
)
def test_lost_attempts_and_errors_share_the_budget_of_two_attempts(words: tuple[str, str], status: str) -> None:
    """No run fails because its machine did: it waits for a person, who has it tried again."""
    played = Played({f"spec-1-spec-{number}": word for number, word in enumerate(words, 1)})
    assert played.count("spec-*") == 2 and played.run["status"] == status


def test_needs_revision_is_routed_and_never_retried() -> None:
    played = Played({"design-review-1-ct-aggregator-1": "NEEDS_REVISION"})
    assert played.count("design-review-1-ct-aggregator-*") == 1 and played.steps().count("design") == 2


# ---- NEEDS_REVISION routing table ----------------------------------------------------------------------


def test_ct_aggregator_routes_to_designer_with_the_review_then_full_ct_rerun() -> None:
    played = Played({"design-review-1-ct-aggregator-1": "NEEDS_REVISION"})
    assert played.steps()[4:8] == ["design", "design-review", "design", "design-review"]
    assert played.count("design-review-2-ct-*") == 5
    leg = [e["leg"] for e in played.journal if e["type"] == "StepStarted" and e["step"] == "design"][1]
    assert leg["findings"] == ["design_critical_review.md"]


def test_ct_aggregator_twice_proceeds_to_planning_with_unresolved_tensions_as_constraints() -> None:
    """ "CT asks for revision twice": at most 1 loop, then planning, and the findings go along."""
    played = Played({"design-review-*-ct-aggregator-1": "NEEDS_REVISION"})
    assert played.steps()[4:9] == ["design", "design-review", "design", "design-review", "planning"]
    carried = [e["carry"] for e in played.journal if e["type"] == "RouteTaken" and e["carry"]]
    assert carried == [{"planning": {"name": "constraints", "paths": ["design_critical_review.md"]}}]
    assert "design_critical_review.md" in seat("planner")["if_present"] and played.run["status"] == "completed"


def test_v_aggregator_routes_to_planner_then_implementers_then_full_v_rerun() -> None:
    played = Played({"verification-1-v-aggregator-1": "NEEDS_REVISION", "implementation-1-implementer.2-1": "ERROR"})
    assert played.steps()[8:12] == ["verification", "planning", "implementation", "verification"]
    assert played.count("verification-2-v-*") == 5
    assert [n for n in played.started if n.startswith("implementation-2-")] == [
        "implementation-2-implementer.2-1",
        "implementation-2-implementer.3-1",
    ]


def test_r_aggregator_routes_to_the_implementers_once_then_escalates_to_a_full_replan() -> None:
    played = Played({"review-[12]-r-aggregator-1": "NEEDS_REVISION"})
    assert played.steps()[9:] == [
        "review",
        "implementation",
        "review",
        "planning",
        "implementation",
        "verification",
        "review",
    ]
    assert played.run["status"] == "completed"


def test_r_aggregator_still_unhappy_after_the_replan_fails_with_the_summary() -> None:
    played = Played({"review-*-r-aggregator-1": "NEEDS_REVISION"})
    assert played.run["status"] == "failed" and played.last_line.startswith("ERROR: ")
    assert played.steps().count("review") == 3


def test_r_security_is_retried_once_then_goes_to_the_planner_then_halts() -> None:
    played = Played({"review-*-r-security-*": "ERROR"})
    assert played.steps()[9:] == [
        "review",
        "review",
        "planning",
        "implementation",
        "verification",
        "review",
    ]
    assert [n for n in played.started if n.startswith("review-2-")] == [
        "review-2-r-security-1",
        "review-2-r-security-2",
        "review-2-r-aggregator-1",
    ]
    assert played.run["status"] == "failed" and "r-security" in played.last_line


@pytest.mark.parametrize("role", ["v-tests", "v-tasks", "v-feature", "r-quality", "r-testing"])
def test_all_sub_agents_route_through_their_aggregator(role: str) -> None:
    """A member's NEEDS_REVISION starts nothing by itself; the aggregator still runs, and the cluster's rule counts
    it."""
    step = "verification" if role.startswith("v-") else "review"
    played = Played({f"{step}-1-{role}-1": "NEEDS_REVISION"})
    assert played.count(f"{step}-1-{role}-*") == 1 and played.count(f"{step}-1-{role[0]}-aggregator-1") == 1
    assert played.steps().count(step) == 2


@pytest.mark.parametrize("step", ["synthesis", "spec", "design", "planning"])
def test_all_other_agents_return_done_or_error_only(step: str) -> None:
    """NEEDS_REVISION is N/A there: handled as that row's ERROR."""
    played = Played({f"{step}-1-*": "NEEDS_REVISION"})
    assert played.count(f"{step}-1-*") == 2 and played.run["status"] == "failed"


# ---- orchestrator expectations per agent ---------------------------------------------------------------


def test_researcher_focused_error_retry_once_synthesis_proceeds_with_available_partials() -> None:
    played = Played({"research-1-researcher-impact-*": "ERROR"})
    assert played.count("research-1-researcher-impact-*") == 2 and played.count("synthesis-1-*") == 1


@pytest.mark.parametrize(
    ("step", "after"),
    [("synthesis", "spec"), ("spec", "design"), ("design", "design-review"), ("planning", "implementation")],
)
def test_sequential_agents_proceed_on_done_retry_once_and_halt_if_persistent(step: str, after: str) -> None:
    good = all_went_well()
    assert good.steps()[good.steps().index(step) + 1] == after
    assert Played({f"{step}-1-*-1": "ERROR"}).run["status"] == "completed"
    bad = Played({f"{step}-1-*": "ERROR"})
    assert bad.count(f"{step}-1-*") == 2 and bad.run["status"] == "failed" and bad.steps()[-1] == step


def test_ct_sub_agents_retry_once_and_needs_revision_is_an_error() -> None:
    played = Played({"design-review-1-ct-security-*": "NEEDS_REVISION"})
    assert played.count("design-review-1-ct-security-*") == 2 and played.steps().count("design") == 1


def test_ct_aggregator_error_retry_once_halt_if_persistent() -> None:
    assert Played({"design-review-1-ct-aggregator-1": "ERROR"}).run["status"] == "completed"
    bad = Played({"design-review-1-ct-aggregator-*": "ERROR"})
    assert bad.count("design-review-1-ct-aggregator-*") == 2 and bad.run["status"] == "failed"


@pytest.mark.parametrize("word", ["ERROR", "NEEDS_REVISION"])
def test_implementer_error_is_recorded_the_rest_waited_for_and_verification_follows(word: str) -> None:
    """Not retried; the wave's others still run, no later wave starts; NEEDS_REVISION is treated as ERROR."""
    played = Played({"implementation-1-implementer.1-*": word})
    assert [n for n in played.started if n.startswith("implementation-1-")] == [
        "implementation-1-implementer.1-1",
        "implementation-1-implementer.2-1",
    ]
    assert played.steps()[8] == "verification" and played.run["items"]["3"]["status"] != "completed"


def test_items_never_started_keep_their_name_in_the_run() -> None:
    played = Played({"implementation-*-implementer.1-*": "ERROR"})
    assert played.run["items"]["3"]["status"] == "pending" and played.run["items"]["1"]["status"] == "failed"


def test_documentation_writer_error_is_recorded_and_stops_nothing() -> None:
    played = Played(
        {"implementation-1-documentation-writer.*": "ERROR"}, [item("1", agent="documentation-writer"), item("2", "1")]
    )
    assert played.count("implementation-1-documentation-writer.1-*") == 1
    assert played.count("implementation-1-implementer.2-1") == 1 and played.run["items"]["1"]["status"] == "failed"


def test_v_build_error_retry_once() -> None:
    played = Played({"verification-1-v-build-1": "ERROR"})
    assert played.count("verification-1-v-build-*") == 2 and played.count("verification-1-v-tests-1") == 1


@pytest.mark.parametrize("role", ["v-tests", "v-tasks", "v-feature"])
def test_v_members_error_retry_once_aggregator_proceeds_with_available(role: str) -> None:
    played = Played({f"verification-1-{role}-*": "ERROR"})
    assert played.count(f"verification-1-{role}-*") == 2 and played.count("verification-1-v-aggregator-1") == 1
    assert played.steps().count("verification") == 2  # a single ERROR alone is NEEDS_REVISION


def test_v_aggregator_is_not_retried_and_triggers_the_replan_loop() -> None:
    played = Played({"verification-1-v-aggregator-1": "ERROR"})
    assert played.count("verification-1-v-aggregator-*") == 1 and played.steps().count("planning") == 2


@pytest.mark.parametrize("role", ["r-quality", "r-testing"])
def test_r_members_error_retry_once_aggregator_proceeds_with_available(role: str) -> None:
    played = Played({f"review-1-{role}-*": "ERROR"})
    assert played.count(f"review-1-{role}-*") == 2 and played.run["status"] == "completed"


def test_r_security_error_makes_the_cluster_error_whatever_the_aggregator_says() -> None:
    played = Played({"review-1-r-security-*": "ERROR"})
    assert played.count("review-1-r-security-*") == 2 and played.steps()[9:11] == ["review", "review"]


@pytest.mark.parametrize("word", ["ERROR", "NEEDS_REVISION"])
def test_r_knowledge_is_not_retried_and_never_blocks(word: str) -> None:
    played = Played({"review-1-r-knowledge-*": word})
    assert played.count("review-1-r-knowledge-*") == 1 and played.run["status"] == "completed"


def test_r_aggregator_done_completes_the_workflow_and_error_triggers_a_replan() -> None:
    assert all_went_well().run["status"] == "completed"
    played = Played({"review-1-r-aggregator-1": "ERROR"})
    assert played.count("review-1-r-aggregator-*") == 1 and played.steps()[10] == "planning"


# ---- the rule over members, seen from the pipeline -----------------------------------------------------


@pytest.mark.parametrize("severity", ["Critical", "High"])
def test_a_ct_finding_of_high_or_worse_overrules_an_aggregator_that_says_done(severity: str) -> None:
    played = Played({"design-review-1-ct-scalability-1": ("DONE", [severity], None)})
    assert played.steps().count("design") == 2


@pytest.mark.parametrize("severity", ["Medium", "Low"])
def test_a_ct_finding_below_high_does_not(severity: str) -> None:
    assert Played({"design-review-1-ct-scalability-1": ("DONE", [severity], None)}).steps().count("design") == 1


def test_an_r_security_blocker_overrules_an_aggregator_that_says_done() -> None:
    played = Played({"review-*-r-security-*": ("DONE", ["Blocker"], None)})
    assert played.run["status"] == "failed"


def test_a_severity_nobody_knows_counts_as_the_worst() -> None:
    assert Played({"design-review-1-ct-scalability-1": ("DONE", ["Frightful"], None)}).steps().count("design") == 2


# ---- task routing, cap, order --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "goes_to"),
    [
        ("implementer", "implementer"),
        ("documentation-writer", "documentation-writer"),
        (None, "implementer"),
        ("wizard", "implementer"),
    ],
)
def test_a_task_is_dispatched_to_the_agent_its_field_names_or_to_the_implementer(
    named: str | None, goes_to: str
) -> None:
    played = Played(items=[item("1", agent=named)])
    assert played.count(f"implementation-1-{goes_to}.1-1") == 1


def test_an_unrecognised_agent_field_is_logged_as_a_warning_an_absent_one_is_not() -> None:
    played = Played(items=[item("1", agent="wizard"), item("2")])
    notes = [note for event in played.journal if event["type"] == "ItemsPlanned" for note in event["notes"]]
    assert len(notes) == 1 and "wizard" in notes[0] and "implementer" in notes[0]


def test_planner_limits_are_warnings_or_needs_revision_under_strict_plan() -> None:
    """And nothing of such a plan is carried out; as soon as the planner says DONE it is told (test_receipts.py)."""
    items = [item("1", files=("a.py", "b.py", "c.py", "d.py"))]
    said = "item 1 has 4 production files; the limit is 3"
    warned = Played(items=items)
    assert [e["notes"] for e in warned.journal if e["type"] == "ItemsPlanned"] == [[said]] and warned.run[
        "status"
    ] == "completed"
    strict = Played(items=items, switches={"strict_plan": True})
    ends = [
        (e["verdict"], e["summary"])
        for e in strict.journal
        if e["type"] == "StepEnded" and e["step"] == "implementation"
    ]
    assert ends[0] == ("NEEDS_REVISION", said) and not strict.count("implementation-1-*")


def test_strict_plan_is_about_limits_an_unknown_agent_and_a_moved_item_stay_warnings() -> None:
    """For those the rules have a remedy: the default agent, a later wave."""
    items = [{**item("1", agent="wizard"), "wave": 1}, {**item("2", "1"), "wave": 1}]
    strict = Played(items=items, switches={"strict_plan": True})
    [notes] = [e["notes"] for e in strict.journal if e["type"] == "ItemsPlanned"]
    assert strict.run["status"] == "completed" and len(notes) == 2 and "moved" in notes[0] and "wizard" in notes[1]


def test_a_wave_of_more_than_four_is_partitioned_into_sub_waves_of_at_most_four() -> None:
    played = Played(items=[item(str(n)) for n in range(1, 10)])
    groups = played.wave_of("implementation-1-*")
    assert max(len(group) for group in groups) == 4
    planned = next(event for event in played.journal if event["type"] == "ItemsPlanned")
    assert planned["groups"] == [["1", "2", "3", "4"], ["5", "6", "7", "8"], ["9"]]


def test_a_sub_wave_starts_only_when_all_of_the_one_before_have_ended() -> None:
    played = Played(items=[item(str(n)) for n in range(1, 10)])
    for group in played.wave_of("implementation-1-*"):
        numbers = {(int(name.split(".")[1].split("-")[0]) - 1) // 4 for name in group}
        assert len(numbers) <= 1


def test_after_an_error_the_remaining_sub_waves_of_the_wave_run_and_no_later_wave() -> None:
    items = [*(item(str(n)) for n in range(1, 7)), item("7", "6")]
    played = Played({"implementation-1-implementer.1-*": "ERROR"}, items)
    assert played.count("implementation-1-*") == 6 and not played.count("implementation-1-implementer.7-*")


# ---- approval gates, completion contract ---------------------------------------------------------------


def test_approval_mode_pauses_after_research_synthesis_and_after_planning() -> None:
    asked: list[str] = []

    def approve(gate: str) -> str:
        asked.append(gate)
        return "approve"

    played = Played(switches={"approval": True}, decide_gate=approve)
    assert asked == ["post-research", "post-planning"]
    assert played.steps()[2:5] == ["synthesis", "post-research", "spec"] and played.run["status"] == "completed"


def test_without_approval_mode_both_gates_are_skipped() -> None:
    played = all_went_well()
    assert not any(event["type"] == "GateOpened" for event in played.journal)


def test_a_rejected_gate_ends_the_run_and_a_revision_runs_the_step_again() -> None:
    rejected = Played(switches={"approval": True}, decide_gate=lambda gate: "reject")
    assert rejected.run["status"] in ("failed", "cancelled") and rejected.steps()[-1] == "post-research"
    told = iter(["revise", "approve", "approve"])
    revised = Played(switches={"approval": True}, decide_gate=lambda gate: next(told))
    assert revised.steps()[2:6] == ["synthesis", "post-research", "synthesis", "post-research"]


def test_the_workflow_completes_only_when_the_final_review_returns_done() -> None:
    for word in ("NEEDS_REVISION", "ERROR"):
        assert Played({"review-*-r-aggregator-*": word}).run["status"] == "failed"
    assert all_went_well().steps()[-1] == "review"


@pytest.mark.parametrize(
    "answers", [{"spec-*": "ERROR"}, {"review-*-r-security-*": "ERROR"}, {"review-*-r-aggregator-*": "NEEDS_REVISION"}]
)
def test_a_workflow_that_cannot_complete_ends_with_error_and_a_summary(answers: dict[str, str]) -> None:
    played = Played(answers)
    assert played.run["status"] == "failed" and len(played.last_line) > len("ERROR: ")


def test_no_step_is_skipped() -> None:
    assert all_went_well().steps() == ON_THE_WAY
