"""The live view: what it shows at each moment, and the same in lines where there is no terminal."""

from __future__ import annotations

import fcntl
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenuto.core.times import iso
from tenuto.engine.rest import is_driven
from tenuto.entrypoints.cli.watch import drawn, until_rest
from tenuto.show.picture import Line, picture
from tenuto.show.sentences import progress_line
from tests.property.rehearsal import Rehearsal, item

from .conftest import reopen

Say = Callable[..., Any]
Script = Callable[..., str]
RUN = ("run", "Add dark mode", "--pipeline", "small", "--name", "r")


def shown(play: Rehearsal) -> list[str]:
    last = play.journal[-1]["at"]
    return [
        "  " * one.depth + f"[{one.status}] {one.text.rstrip()} ({one.aside})"
        for one in picture(play.run, play.pipeline, last)
    ]


def play_until(play: Rehearsal, step: str, flying: int) -> None:
    while not (
        play.run["current_visit"] and play.run["current_visit"]["step"] == step and len(play.run["in_flight"]) == flying
    ):
        assert play.step(), f"{step} never had {flying} attempts under way"


def test_the_picture_shows_steps_attempts_and_retries() -> None:
    play = Rehearsal("eight-step", lambda a: "ERROR" if a["attempt"] == "design-1-designer-1" else "DONE", [item("1")])
    play_until(play, "design", 1)
    play_until(play, "design", 0)
    play_until(play, "design", 1)
    lines = shown(play)
    assert lines[0].startswith("[running] r: running (") and "7 attempts" not in lines[0] and "1 again" in lines[0]
    assert any(words.startswith("  [completed] research (") for words in lines)
    assert any(words.startswith("  [skipped] post-research") for words in lines)
    assert any(words.startswith("    [running] designer (") and "attempt 2" in words for words in lines), lines
    assert any(words.startswith("  [pending] review") for words in lines)


def test_the_picture_shows_waves_and_their_items() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1"), item("2"), item("3", "1")])
    play_until(play, "implementation", 2)
    assert "    [] wave 1 of 2: 0 of 3 items ended ()" in shown(play)
    assert any(words.startswith("    [running] implementer 1 (") for words in shown(play))
    play_until(play, "implementation", 1)
    play_until(play, "implementation", 0)
    play_until(play, "implementation", 1)
    assert "    [] wave 2 of 2: 2 of 3 items ended ()" in shown(play)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {
                "gate": {
                    "id": "gate-1",
                    "name": "plan",
                    "prompt": "Go on?",
                    "options": ["approve"],
                    "opened_at": iso(0),
                    "shown": [{"path": "docs/plan.md", "sha256": "x"}],
                }
            },
            ["waits for you: Go on?", "docs/plan.md", "tenuto approve r"],
        ),
        (
            {
                "pause": {
                    "kind": "budget",
                    "reason": "40 attempts",
                    "step": "design",
                    "until": "",
                    "question_of": "",
                    "recommendations": ["tenuto resume r --limit attempts=N"],
                }
            },
            ["budget: 40 attempts", "tenuto resume r"],
        ),
        (
            {"blocked": {"reason": "PLAN->IMPLEMENT", "missing": ["1.2-plan.md"]}},
            ["blocked: PLAN->IMPLEMENT 1.2-plan.md"],
        ),
        ({"failure": {"step": "spec", "error": "no"}}, ["failed in spec: no"]),
    ],
)
def test_the_picture_shows_what_waits_for_you(change: Any, words: list[str]) -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [])
    text = "\n".join(one.text for one in picture({**play.run, **change}, play.pipeline, iso(0)))
    assert all(word in text for word in words), text


def test_a_run_without_a_pipeline_is_shown_by_its_steps() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [])
    run: Any = {**play.run, "steps": {"architect": {"status": "completed", "iteration": 1, "verdict": None}}}
    assert [one.text.rstrip() for one in picture(run, None, iso(0))][1] == "architect"


def test_stored_text_is_inert_and_lines_fit_the_terminal() -> None:
    told = drawn(Line("running", "design\x1b[31m", 1, "x" * 200), 40)
    assert "\x1b" not in told.plain and told.cell_len <= 40 and told.plain.startswith("  \u25cf design")
    assert drawn(Line("running", "design", 1), 40, plain=True).plain == "  * design"


def test_each_thing_that_matters_is_one_line() -> None:
    words = {
        "design-1-designer-1": "ERROR",
        "implementation-1-implementer.1-1": "LOST",
        "design-review-1-ct-aggregator-1": "NEEDS_REVISION",
    }
    play = Rehearsal("eight-step", lambda a: words.get(a["attempt"], "DONE"), [item("1")])
    play.play()
    lines = [told for event in play.journal if (told := progress_line(event, play.run))]
    for expected in (
        "research: researcher-architecture",
        "design: designer (attempt 2)",
        "implementation: implementation-1-implementer.1-1 is lost: killed",
        "design-review ended with NEEDS_REVISION: ct-aggregator says NEEDS_REVISION",
        "back to design > design-review (design-review.NEEDS_REVISION, 1 so far)",
        "1 item in 1 wave",
        "post-research is left out: approval is off",
    ):
        assert expected in lines, (expected, lines)
    assert any(told.startswith("spec: spec DONE after ") for told in lines)


def test_a_review_that_is_never_content_is_said_when_the_run_goes_on_all_the_same() -> None:
    play = Rehearsal("eight-step", lambda a: "NEEDS_REVISION" if a["role"] == "ct-aggregator" else "DONE", [item("1")])
    play.play()
    lines = [told for event in play.journal if (told := progress_line(event, play.run))]
    assert "on to planning all the same, with design_critical_review.md as constraints" in lines


def test_without_a_terminal_watching_tells_everything_and_ends_with_the_run(say: Say, script: Script) -> None:
    driven = say(*RUN, "--agent", script())
    watched = say("watch", "r")
    assert watched.status == 0 and watched.out == "r: completed\n"
    going_on = [line for line in driven.err.splitlines() if not line.startswith("checks: ")]  # said at the start only
    assert watched.err.splitlines() == going_on, "run shows the same while it goes on"
    assert "write: designer DONE after" in watched.err


def test_watching_a_run_that_waits_ends_with_5_and_one_that_nobody_drives_says_so(say: Say, script: Script) -> None:
    assert say(*RUN, "--agent", script(), "--limit", "attempts=2").status == 5
    assert say("watch").status == 5
    assert say("run", "Other", "--pipeline", "small", "--name", "s", "--start-only").status == 0
    told = say("watch", "s")
    assert told.status == 0 and "nobody drives it" in told.err
    assert say("watch", "nowhere").status == 3


def test_watching_goes_on_while_somebody_drives(say: Say, repository: Path, script: Script) -> None:
    """Another process holds the engine's lock; when it lets go, and the run rests, watching ends."""
    assert say(*RUN, "--agent", script(), "--limit", "attempts=2").status == 5
    workspace = reopen(repository)
    assert not is_driven(workspace, "r")
    lock = io.FileIO(f"{workspace.state}/attempts/r/engine.lock", "r+")
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert is_driven(workspace, "r")
    with workspace.turn() as turn:
        turn.do("r", {"do": "Resume"})
    looks: list[int] = []

    def rest() -> None:
        looks.append(1)
        if len(looks) == 3:
            lock.close()

    assert until_rest(workspace, "r", None, rest)["status"] == "running" and len(looks) == 3
