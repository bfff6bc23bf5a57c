"""What an agent may do right now, how deep it stands, when it waits: each rule of core/boundaries.py, waiting.py and
feedback.py."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core import approvals
from tenuto.core.budget import later, parked_agents
from tenuto.core.rules import after_audit
from tests.unit.core.by_command import Asked

OPEN = [{"step": "plan", "approval": True}, {"step": "build"}, {"step": "check", "approval": True}, {"step": "ship"}]


@pytest.mark.parametrize(
    "rest",
    [
        {"do": "OpenGate", "name": "g", "prompt": "?"},
        {"do": "Pause", "reason": "x"},
        {"do": "Park", "until": "", "reason": ""},
        {"do": "Stop"},
    ],
    ids=lambda one: one["do"],
)
def test_while_a_run_waits_for_a_person_nobody_is_sent(rest: dict[str, str]) -> None:
    asked = Asked()
    assert approvals.closed(asked.run, "plan") is None
    asked.do(**rest)
    why = approvals.closed(asked.run, "plan")
    assert why == ("run x waits at gate 'g'" if rest["do"] == "OpenGate" else f"run x is {asked.run['status']}")
    assert approvals.closed(asked.run, None), "for no step, either"


def test_in_front_of_an_approval_nobody_gave_nobody_is_sent_behind_it() -> None:
    asked = Asked(order="open", schedule=OPEN)
    assert "'plan' of run x" in str(approvals.closed(asked.run, "plan")) and "'plan' of run x" in str(
        approvals.closed(asked.run, "ship")
    )
    assert approvals.closed(asked.run, "elsewhere") is None and approvals.closed(asked.run, None) is None, (
        "what is not in the order"
    )
    asked.do("StartStep", step="plan")
    asked.do("Checkpoint", step="plan", approved=True, who="ada")
    assert approvals.closed(asked.run, "plan") is None and approvals.closed(asked.run, "build") is None
    assert "'check' of run x" in str(approvals.closed(asked.run, "check"))
    for order in ("any", "strict"):
        assert approvals.closed(Asked(order=order, schedule=OPEN).run, "ship") is None, (
            "only an open order is entered anywhere"
        )


def test_how_deep_an_agent_stands() -> None:
    asked = Asked()
    asked.dispatch("a")
    asked.dispatch("b", extra={"depth": 3})
    assert [approvals.depth_of(asked.run, parent) for parent in (None, "", "nobody", "a", "b")] == [1, 1, 1, 2, 4]


@pytest.mark.parametrize(
    ("declared", "path", "inside"),
    [
        (None, "any/thing.py", True),
        ("nonsense", "a.py", True),
        ([], "a.py", False),
        (["src/**"], "src/a/b.py", True),
        (["src/**"], "docs/a.md", False),
        (["src/"], "src/a/b.py", True),
        (["src/"], "srcs/a.py", False),
        (["docs/*", "src/**"], "src/a.py", True),
        (["**"], "/etc/passwd", False),
        (["**"], "../a.py", False),
        ({"plan": ["docs/**"]}, "docs/a.md", True),
        ({"plan": ["docs/**"]}, "src/a.py", False),
        ({"build": ["docs/**"]}, "src/a.py", True),
        ({"*": ["docs/**"]}, "src/a.py", False),
        ({"plan": ["src/**"], "*": ["docs/**"]}, "src/a.py", True),
        ({"plan": ["src/**"], "*": ["docs/**"]}, "docs/a.md", False),
    ],
)
def test_which_files_a_step_may_touch(declared: Any, path: str, inside: bool) -> None:
    asked = Asked()
    asked.do("StartStep", step="plan")
    why = approvals.outside(asked.run, declared, path)
    assert (why is None) is inside
    if why:
        assert path in why and "'plan'" in why and why.endswith(": nothing") is (declared == [])


def test_between_two_steps_only_what_holds_for_all_of_them() -> None:
    asked = Asked()
    assert approvals.outside(asked.run, {"plan": ["docs/**"]}, "src/a.py") is None
    why = approvals.outside(asked.run, {"*": []}, "src/a.py")
    assert why is not None and "'this step'" in why and why.endswith("nothing")


def test_the_files_of_the_items_under_way() -> None:
    asked = Asked()
    asked.do("PlanItems", items={"1": {"files": ["a.py"]}, "2": {"files": ["b.py"]}})
    assert approvals.outside(asked.run, "items", "c.py") is None, "nobody works on an item"
    asked.do("ChangeItem", item="1", status="running")
    assert (
        approvals.outside(asked.run, "items", "a.py") is None
        and approvals.outside(asked.run, "items", "b.py") is not None
    )


@pytest.mark.parametrize("declared", ["items", {"*": "items"}])
def test_what_a_plan_means_by_a_short_name(declared: Any) -> None:
    """Without its folder, without its ending; what a user declares as a pattern means itself."""
    asked = Asked()
    asked.do("PlanItems", items={"1": {"files": ["a.py", "ct-security"]}})
    asked.do("ChangeItem", item="1", status="running")
    for path in ("src/a.py", "agents/ct-security.agent.md", "ct-security/new.py"):
        assert approvals.outside(asked.run, declared, path) is None, path
    refused = approvals.outside(asked.run, declared, "src/b.py")
    assert refused is not None and refused.endswith("may edit: a.py, ct-security")
    assert approvals.outside(asked.run, ["a.py"], "src/a.py") is not None


def test_the_runs_own_word_counts_before_the_repositorys() -> None:
    run: Any = {"settings": {"hooks": {"a": 2, "c": 3}}}
    assert approvals.settings_of({"hooks": {"a": 1, "b": 1}}, run) == {"a": 2, "b": 1, "c": 3}
    silent: Any = {"settings": {}}
    assert approvals.settings_of({"hooks": {"a": 1}}, None) == {"a": 1}
    assert approvals.settings_of({}, silent) == {}
    assert approvals.settings_of({}, run) == {"a": 2, "c": 3}


def attempt(agent: str, verdict: str | None, until: str) -> Any:
    return {"agent": agent, "verdict": verdict, "extra": {"parked_until": until} if until else {}}


def test_agents_that_reached_a_limit_wait_until_it_ends() -> None:
    noon = "2026-11-15T12:00:00.000Z"
    told = [
        attempt("a", "PARKED", "2026-11-15T12:00:00.001Z"),
        attempt("b", "PARKED", noon),
        attempt("c", "PARKED", "2026-11-15T11:00:00.000Z"),
        attempt("d", "DONE", "2026-11-15T13:00:00.000Z"),
        attempt("e", "PARKED", ""),
        attempt("f", "PARKED", "some day"),
    ]
    run: Any = {"attempts": {str(number): one for number, one in enumerate(told)}}
    assert parked_agents(run, noon) == {"a": "2026-11-15T12:00:00.001Z"}
    assert parked_agents(run, "no time").keys() == {"a", "b", "c"}, "without a clock, everything is still to come"
    assert later(noon) == "2026-11-15T12:05:00.000Z" and later("no time") == "1970-01-01T00:05:00.000Z"


@pytest.mark.parametrize(
    ("verdict", "taken", "then"),
    [
        ("PASS", 0, "on"),
        ("PASS", 9, "on"),
        ("DESIGN_FLAW", 0, "again"),
        ("DESIGN_FLAW", 1, "again"),
        ("DESIGN_FLAW", 2, "pause"),
        ("IMPLEMENTATION_FLAW", 1, "again"),
        ("IMPLEMENTATION_FLAW", 2, "pause"),
        ("ESCALATE", 0, "pause"),
        ("", 0, "pause"),
    ],
)
def test_what_an_audit_leads_to(verdict: str, taken: int, then: str) -> None:
    assert after_audit(verdict, taken) == then
