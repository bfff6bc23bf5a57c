"""A run that is handed out piece by piece, in a session whose hooks see the agents at work: one attempt, not two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Unpack

import pytest

import tenuto
from tenuto.engine import guided
from tenuto.engine.begin import start
from tenuto.errors import BadInput, NotFound
from tenuto.hooks.call import answer
from tenuto.hooks.gates import declare
from tenuto.hooks.parse import parse_hook
from tests.acceptance.rehearsing import repository

SESSION = "8dd9056e-c8e9-4b44-be02-7f3be68ade4c"
PIPELINE = """\
name: small
documents: docs/{slug}
cap: 2
steps:
  - id: look
    cluster:
      members:
        - {role: researcher, mode: focused, focus: architecture, out: a.md}
        - {role: researcher, mode: focused, focus: impact, out: b.md}
      quorum: 1
      retry: {ERROR: 1}
  - id: write
    agent: {role: designer, in: [a.md, b.md], out: design.md}
    retry: {ERROR: 1, NEEDS_REVISION: 1}
    verdicts: [DONE, NEEDS_REVISION, ERROR]
    on: {NEEDS_REVISION: fail}
"""
A, B, WRITE = "look-1-researcher-architecture-1", "look-1-researcher-impact-1", "write-1-designer-1"


class Session:
    """An interactive agent program in a repository: it asks what is to be done, calls agents, and its hooks tell of
    them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = repository(folder)
        (self.root / ".tenuto" / "pipelines").mkdir(parents=True)
        (self.root / ".tenuto" / "pipelines" / "small.yaml").write_text(PIPELINE)
        self.workspace = tenuto.open(str(self.root))
        start(self.workspace, "Add dark mode", "small", name="r")

    def next(self) -> list[Any]:
        return guided.hand_out(self.workspace, "r", {})[1]

    def hook(self, event: str, **payload: Any) -> str:
        given = {"session_id": SESSION, "cwd": str(self.root), "hook_event_name": event, **payload}
        return answer(tenuto.open(str(self.root), by="hook"), parse_hook(event, given))

    def agent(self, agent: str, kind: str, prompt: str, reply: str) -> str:
        """Started, at work, stopped: as Claude Code tells of it. Its transcript begins with the prompt."""
        transcript = self.folder / f"agent-{agent}.jsonl"
        self.hook("SubagentStart", agent_id=agent, agent_type=kind)
        transcript.write_text(json.dumps({"type": "user", "message": {"role": "user", "content": prompt}}) + "\n")
        return self.hook(
            "SubagentStop",
            agent_id=agent,
            agent_type=kind,
            last_assistant_message=reply,
            agent_transcript_path=str(transcript),
            stop_hook_active=False,
        )

    def deliver(self, work: Any) -> None:
        for path in work["outputs"]:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(f"# {work['attempt']}\n")

    def report(self, attempt: str, **words: Unpack[guided.Report]) -> tuple[str, str, Any]:
        return guided.accept(self.workspace, "r", attempt, words, {})

    @property
    def attempts(self) -> dict[str, Any]:
        return dict(self.workspace.load("r")["attempts"])


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def test_what_hooks_saw_is_in_the_attempt_that_was_handed_out(session: Session) -> None:
    """Two agents of the same role: each is told from the other by the mark in its prompt. An empty report says what
    they said."""
    works = session.next()
    for number, work in enumerate(works):
        session.deliver(work)
        session.agent(f"a{number}", "tenuto:researcher", work["prompt"], f"Looked.\n\nDONE: looked at {number}")
    assert list(session.attempts) == [A, B], "no attempt of the hook's own"
    assert [one["extra"]["agent_id"] for one in session.attempts.values()] == ["a0", "a1"]
    assert SESSION in session.workspace.load("r")["sessions"]
    assert session.report(B)[:2] == ("DONE", "looked at 1")
    assert session.report(A, verdict="DONE", summary="mine", reply="DONE: mine")[:2] == ("DONE", "mine")
    assert (Path(session.workspace.state) / "attempts" / "r" / B / "1" / "stdout").read_text().startswith("Looked.")


def test_a_report_is_never_better_than_what_the_agent_said(session: Session) -> None:
    for work in session.next():
        session.deliver(work)
        session.agent(work["attempt"], "general-purpose", work["prompt"], "ERROR: I could not look")
    verdict, summary, _ = session.report(A, verdict="DONE", summary="all is well", reply="DONE: all is well")
    assert verdict == "ERROR" and summary == "reported DONE, but the agent itself said ERROR: I could not look"
    assert session.report(B, verdict="ERROR", summary="worse", reply="ERROR: worse")[:2] == ("ERROR", "worse"), (
        "worse is always believed"
    )


def test_an_agent_of_the_only_open_role_is_known_from_its_start(session: Session) -> None:
    """Without a mark, as from a program that tells no transcript: the role decides where only one attempt has it."""
    for work in session.next():
        session.deliver(work)
        session.report(work["attempt"], verdict="DONE", summary="looked", reply="DONE: looked")
    session.next()
    session.hook("SubagentStart", agent_id="d1", agent_type="designer")
    assert session.attempts[WRITE]["status"] == "running" and session.attempts[WRITE]["extra"]["agent_id"] == "d1"
    session.hook("SubagentStart", agent_id="d2", agent_type="designer")
    assert session.attempts[WRITE]["extra"]["agent_id"] == "d1", "it is taken"
    session.hook("SubagentStop", agent_id="d2", agent_type="designer", last_assistant_message="DONE: something else")
    assert "said" not in session.attempts[WRITE]["extra"]
    session.hook("SubagentStop", agent_id="d1", agent_type="designer", last_assistant_message="NEEDS_REVISION: not yet")
    assert session.attempts[WRITE]["extra"]["said"] == {"verdict": "NEEDS_REVISION", "summary": "not yet"}


def test_agents_that_work_on_nothing_handed_out_leave_no_trace(session: Session) -> None:
    session.next()
    before = session.workspace.load("r")["version"]
    session.agent("e1", "Explore", "look around", "DONE: looked around")
    session.hook("SubagentStop", agent_id="c", agent_type="", last_assistant_message="<summary>")
    assert session.workspace.load("r")["version"] == before
    with pytest.raises(BadInput, match="no hook heard"):
        session.report(A)


def test_a_stop_that_comes_after_the_report_changes_nothing(session: Session) -> None:
    work = session.next()[0]
    session.deliver(work)
    session.report(A, verdict="DONE", summary="looked", reply="DONE: looked")
    session.agent("late", "researcher-x", work["prompt"], "ERROR: late")
    assert session.attempts[A]["verdict"] == "DONE"


def test_an_answer_without_a_verdict_goes_back_where_that_is_declared(session: Session) -> None:
    """At most twice; then whoever leads the run has to say what came of it."""
    declare(session.workspace, {"verdicts": True})
    work = session.next()[0]
    answers = [session.agent("a0", "researcher", work["prompt"], "I am done, I think.") for _ in range(3)]
    assert ["End your answer with one line" in answer for answer in answers] == [True, True, False]
    session.deliver(work)
    assert session.report(A, verdict="DONE", summary="looked", reply="DONE: looked")[0] == "DONE"


def test_after_a_compaction_the_session_is_told_what_it_leads_and_how_to_go_on(session: Session) -> None:
    work = session.next()[0]
    session.agent("a0", "researcher", work["prompt"], "DONE: looked")
    assert session.hook("PreCompact", trigger="auto") == ""
    told = json.loads(session.hook("SessionStart", source="compact"))["hookSpecificOutput"]["additionalContext"]
    assert f"- {A} (researcher): its agent has ended: report it" in told
    assert f"- {B} (researcher): no agent is known to work on it" in told
    assert "tenuto next r" in told and "`next`" in told
    run = session.workspace.load("r")
    assert run["resume"] and run["resume"]["restored_at"] and [work["attempt"] for work in session.next()] == [A, B]


def test_a_session_that_asks_owns_the_run(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """With several runs open, what its hooks tell is about the one it leads."""
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "mine")
    start(session.workspace, "Another", "small", name="other")
    session.next()
    assert session.workspace.load("r")["sessions"] == ["mine"]
    session.hook("PreCompact", trigger="auto", session_id="mine")
    assert session.workspace.load("r")["resume"] and not session.workspace.load("other")["resume"]


def written(session: Session) -> None:
    for work in session.next():
        session.deliver(work)
        session.report(work["attempt"], verdict="DONE", summary="looked", reply="DONE: looked")


def test_what_an_agent_is_at_work_on_is_not_handed_out_twice(session: Session) -> None:
    """After a compaction the leader asks again: the first agent was still at work, and a second one was started."""
    written(session)
    (work,) = session.next()
    assert (work["state"], work["at_work"]) == ("to do", None) and work["prompt"].startswith("[tenuto attempt r.")
    session.hook("SubagentStart", agent_id="d1", agent_type="designer")
    session.hook("PreCompact", trigger="manual")
    told = json.loads(session.hook("SessionStart", source="compact"))["hookSpecificOutput"]["additionalContext"]
    since = session.attempts[WRITE]["extra"]["at_work_since"]
    assert f"- {WRITE} (designer): an agent works on it since {since}: wait for its end" in told
    (work,) = session.next()
    assert work["state"] == "at work" and work["at_work"] == {"agent": "d1", "session": SESSION, "since": since}
    assert not work["prompt"].startswith("[tenuto attempt") and "do not start another one" in work["prompt"]
    session.deliver(work)
    session.hook("SubagentStop", agent_id="d1", agent_type="designer", last_assistant_message="DONE: designed")
    (work,) = session.next()
    assert work["state"] == "ended" and "Report it" in work["prompt"]
    assert session.report(WRITE)[:2] == ("DONE", "designed")


def test_an_agent_that_is_gone_is_replaced(session: Session) -> None:
    """The program was started anew, or the leader knows it: what the agent had is handed out again."""
    written(session)
    session.next()
    session.hook("SubagentStart", agent_id="d1", agent_type="designer")
    session.hook("SessionStart", source="resume")
    (work,) = session.next()
    assert work["state"] == "to do"
    session.hook("SubagentStart", agent_id="d2", agent_type="designer")
    assert session.next()[0]["state"] == "at work"
    (work,) = guided.hand_out(session.workspace, "r", {}, again=[WRITE])[1]
    assert work["state"] == "to do" and work["prompt"].startswith("[tenuto attempt r.")
    with pytest.raises(NotFound):
        guided.hand_out(session.workspace, "r", {}, again=["gone"])


def test_a_run_is_not_taken_over_where_what_is_asked_for_anew_is_not_handed_out(session: Session) -> None:
    before = session.workspace.load("r")["version"]
    with pytest.raises(NotFound):
        guided.hand_out(session.workspace, "r", {}, again=["gone"])
    assert session.workspace.load("r")["version"] == before


def test_a_text_without_a_verdict_is_not_the_end(session: Session) -> None:
    """A leader handed in what the tool said when it had started an agent in the background: a try was burnt."""
    work = session.next()[0]
    with pytest.raises(BadInput, match="nothing was recorded") as refused:
        session.report(A, reply="Async agent launched successfully. You will be told when it has ended.")
    assert refused.value.code == "no-verdict"
    assert session.attempts[A]["status"] in ("dispatched", "running")
    session.deliver(work)
    assert session.report(A, reply="Looked.\n\nDONE: looked")[:2] == ("DONE", "looked")
    assert session.report(B, verdict="ERROR", summary="it never ended", reply="ERROR: it never ended")[0] == "ERROR"


def test_a_prompt_says_what_to_do_where_a_tool_refuses_a_name(session: Session) -> None:
    """Claude Code lets no subagent write a file that is called analysis.md."""
    assert "refuses to write an output because of its name" in session.next()[0]["prompt"]
