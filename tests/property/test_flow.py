"""Whatever an orchestrator calls, in whatever order: the workflow keeps its rules."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import tenuto
from tenuto.core.fold import fold
from tenuto.core.rules import PHASES
from tenuto.errors import TenutoError
from tenuto.repository import Repository
from tenuto.views import Views
from tenuto.views.flow import document
from tests.support.memory_journal import MemoryJournal

EVERY = (*PHASES, "complete")
AGENTS = st.sampled_from(["deep_research", "plan_work", "execute_step", "validation_agent", "state_manager", "x"])
TASKS = st.sampled_from(["analysis", "implement_step_1", "implement_step_2", ""])
CALLS = st.one_of(
    st.tuples(st.just("update_delegation"), st.fixed_dictionaries({"agent": AGENTS, "task": TASKS})),
    st.tuples(
        st.just("update_completion"),
        st.fixed_dictionaries({"agent": AGENTS, "status": st.sampled_from(["completed", "failed", "blocked", "odd"])}),
    ),
    st.tuples(
        st.just("update_user_checkpoint"),
        st.fixed_dictionaries({"approved": st.booleans()}, optional={"phase": st.sampled_from(EVERY)}),
    ),
    st.tuples(st.just("update_phase"), st.fixed_dictionaries({"phase": st.sampled_from(EVERY)})),
    st.tuples(
        st.just("update_commit"),
        st.fixed_dictionaries(
            {"step": st.sampled_from(["step_1", "step_2_b"]), "commit_hash": st.sampled_from(["a1b2", "c3d4"])}
        ),
    ),
    st.tuples(st.just("resume_workflow"), st.just({})),
)


@settings(max_examples=60)
@given(st.lists(CALLS, max_size=25))
def test_no_order_of_calls_advances_without_an_approval_or_loses_an_entry(calls: list[tuple[str, Any]]) -> None:
    """A phase is left by an approval of that very phase and by nothing else; histories only grow; a completion
    closes a delegation; the file is what the journal says; a refusal changes nothing."""
    with tempfile.TemporaryDirectory() as root:
        clock = iter(f"2026-01-01T{n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d}.000Z" for n in range(86400))
        journal = MemoryJournal(root + "/.tenuto")
        Path(root, ".tenuto").mkdir()
        workspace = Repository(root, "", journal, Views(), lambda: next(clock), "user")
        workspace.flow.initialize_workflow("T-1")
        file = Path(root, ".ai-workspace/T-1/flow-state.json")
        before = json.loads(file.read_text())
        for name, fields in calls:
            try:
                getattr(workspace.flow, name)("T-1", **fields)
                accepted = True
            except TenutoError:
                accepted = False
            after = json.loads(file.read_text())
            if not accepted:
                assert after == before
            if after["phase"] != before["phase"]:
                assert name == "update_user_checkpoint" and fields["approved"]
                assert after["user_checkpoints"][-1]["phase"] == before["phase"]
                assert EVERY.index(after["phase"]) == EVERY.index(before["phase"]) + 1
            for key in ("agent_history", "user_checkpoints", "commits_created"):
                assert len(after[key]) >= len(before[key])
            assert all("state" not in entry["agent"] for entry in after["agent_history"])
            before = after
        with journal.read() as reader:
            assert document(fold(reader.events("t-1"))) == before


def test_the_library_is_opened_by_name() -> None:
    with tempfile.TemporaryDirectory() as root:
        assert tenuto.open(root).flow.initialize_workflow("T-1")["phase"] == "understanding"
