"""Programs behind `command:` that misbehave, one fault each, through the whole engine: the run ends as its pipeline
says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shlex import join, quote
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.begin import start
from tenuto.engine.boundary import alone_in_tree, refuse_beside
from tenuto.engine.loop import Engine
from tenuto.errors import Refused
from tests.support import rogues

D = "docs/feature/add-dark-mode"
PIPELINE = """
name: small
documents: docs/feature/{slug}
shown_as: feature_docs
memory: run
given: [initial-request.md, memory.md]
steps:
  - id: design
    number: "1"
    agent: {role: designer, out: design.md, memory: write, time_limit: 1s}
    retry: {ERROR: 1}
    on: {ERROR: halt}
"""
WRITE = 'mkdir -p "$(dirname "$TENUTO_OUTPUTS")"; echo "# Design" > "$TENUTO_OUTPUTS"; '


class Ground:
    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "repository"
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        (self.root / ".tenuto" / "pipelines").mkdir(parents=True)
        (self.root / "code.txt").write_text("code\n")

    def drive(self, agent: str, limit: str = "10m", pipeline: str = PIPELINE) -> Any:
        (self.root / ".tenuto" / "pipelines" / "small.yaml").write_text(pipeline.replace("1s", limit))
        subprocess.run(["git", "-C", str(self.root), "add", "."], check=True)
        subprocess.run(["git", "-C", str(self.root), "commit", "-q", "-m", "begin"], check=True)
        self.workspace = tenuto.open(str(self.root))
        name = start(self.workspace, "Add dark mode", "small")["id"]
        return Engine(self.workspace, name, Roster(f"command:{agent}"), {}).drive()

    def shell(self, script: str, limit: str = "10m", pipeline: str = PIPELINE) -> Any:
        """The agent is this script; $TRIES counts its starts."""
        path = self.folder / "agent.sh"
        count = self.folder / "tries"
        path.write_text(
            f"#!/bin/sh\necho x >> {count}; TRIES=$(wc -l < {count})\ncat > {self.folder}/prompt\n{script}\n"
        )
        path.chmod(0o755)
        return self.drive(str(path), limit, pipeline)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def summaries(run: Any) -> list[str]:
    return [attempt["summary"] for attempt in run["attempts"].values()]


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_an_obedient_program_gets_its_prompt_and_its_surroundings(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompt on standard input, reply on standard output, TENUTO_* and the allow-list in the environment, nothing
    else."""
    monkeypatch.setenv("SECRET_TOKEN", "canary")
    run = ground.shell(WRITE + f"env > {ground.folder}/env; pwd > {ground.folder}/pwd; echo DONE: fine")
    assert run["status"] == "completed" and summaries(run) == ["fine"]
    told = dict(line.split("=", 1) for line in (ground.folder / "env").read_text().splitlines() if "=" in line)
    assert {name: told[name] for name in told if name.startswith("TENUTO_")} == {
        "TENUTO_RUN": "add-dark-mode",
        "TENUTO_STEP": "design",
        "TENUTO_ATTEMPT": "add-dark-mode.design-1-designer-1.1",
        "TENUTO_ROLE": "designer",
        "TENUTO_ITEM": "",
        "TENUTO_OUTPUTS": f"{D}/design.md",
        "TENUTO_WORKDIR": str(ground.root),
    }
    assert "canary" not in (ground.folder / "env").read_text()
    assert (ground.folder / "pwd").read_text().strip() == str(ground.root)
    assert "Add dark mode" in (ground.folder / "prompt").read_text()


def test_a_slow_one_is_ended_at_its_time_limit_with_its_whole_tree_and_tried_again(ground: Ground) -> None:
    pids = ground.folder / "pids"
    run = ground.shell(
        f"if [ $TRIES = 1 ]; then (trap '' TERM; echo $$ >> {pids}; sleep 3600) & echo $! >> {pids}; wait; "
        f"fi\n{WRITE} echo DONE: at last",
        limit="5s",  # the second try keeps it also on a busy machine
    )
    assert summaries(run) == ["the time limit was reached", "at last"] and run["status"] == "completed"
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_a_silent_one_has_said_error(ground: Ground) -> None:
    run = ground.shell(WRITE)
    assert run["status"] == "failed" and summaries(run) == ["the reply is empty"] * 2


def test_a_lying_one_is_found_out(ground: Ground) -> None:
    run = ground.shell("echo DONE: all designed")
    assert summaries(run) == [f"claimed DONE, but the output {D}/design.md does not exist"] * 2


@pytest.mark.parametrize(
    ("how", "said"), [("exit 7", "exit status 7"), ("kill -SEGV $$", "signal 11"), ("kill -9 $$", "signal 9")]
)
def test_a_crashing_one_is_an_error_whatever_it_printed(ground: Ground, how: str, said: str) -> None:
    run = ground.shell(f"{WRITE} echo DONE: fine; if [ $TRIES = 1 ]; then {how}; fi")
    assert said in summaries(run)[0] and summaries(run)[1] == "fine" and run["status"] == "completed"


def test_one_that_is_not_there_is_named_and_not_tried_six_times(ground: Ground) -> None:
    run = ground.drive("./no-such-program")
    assert run["status"] == "failed" and all("no-such-program" in said for said in summaries(run))
    assert [attempt["receipt"]["starts"] for attempt in run["attempts"].values()] == [1, 1]


def test_a_daemonising_one_leaves_nothing_behind_and_its_word_counts(ground: Ground) -> None:
    fifo = ground.folder / "fifo"
    os.mkfifo(fifo)
    keeper = os.open(fifo, os.O_RDWR)
    heard = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    run = ground.shell(f"{WRITE} exec {join(rogues.command('daemonise', str(fifo)))}")
    told = os.read(heard, 4096).decode().split()
    os.close(keeper)
    os.close(heard)
    daemon = int(told[told.index("daemon") + 1])
    assert run["status"] == "completed" and summaries(run) == ["and left a daemon"] and gone(daemon)
    assert [left["pid"] for left in run["attempts"]["design-1-designer-1"]["receipt"]["leftover"]] == [daemon]


def test_one_that_holds_standard_output_open_does_not_hold_up_the_run(ground: Ground) -> None:
    pid = ground.folder / "pid"
    run = ground.shell(f"{WRITE} (trap '' TERM HUP; sleep 3600) & echo $! > {pid}; echo DONE: fine")
    assert run["status"] == "completed" and gone(int(pid.read_text()))


def test_one_that_writes_where_it_must_not_is_named_and_its_done_is_void(ground: Ground) -> None:
    run = ground.shell(f"{WRITE} if [ $TRIES = 1 ]; then echo x >> code.txt; fi; echo DONE: fine")
    assert "files outside the boundary were changed: code.txt (design-1-designer-1)" in summaries(run)[0]
    assert summaries(run)[1] == "fine"
    assert (ground.root / "code.txt").read_text() == "code\n"


def kept(ground: Ground) -> dict[str, str]:
    """What lies in quarantine, by the place where it was found."""
    folder = Path(ground.workspace.state) / "quarantine"
    files = [path for path in folder.glob("*/**/*") if path.is_symlink() or path.is_file()]
    return {
        "/".join(path.relative_to(folder).parts[1:]): os.readlink(path) if path.is_symlink() else path.read_text()
        for path in files
    }


@pytest.mark.parametrize(
    ("stray", "where", "text"),
    [
        ("echo x >> code.txt", "code.txt", "code\nx\n"),
        ("echo x >> code.txt; git add code.txt", "code.txt", "code\nx\n"),
        ("git update-index --assume-unchanged code.txt; echo x > code.txt", "code.txt", "x\n"),
        ("mkdir -p new; echo x > new/file", "new/file", "x\n"),
        ("rm code.txt; ln -s /etc/passwd code.txt", "code.txt", "/etc/passwd"),
    ],
)
def test_a_stray_change_is_put_aside_before_the_next_attempt_and_kept(
    ground: Ground, stray: str, where: str, text: str
) -> None:
    run = ground.shell(
        f"{WRITE} if [ $TRIES = 1 ]; then {stray}; else cat code.txt > {ground.folder}/met; fi; echo DONE: ok"
    )
    assert run["status"] == "completed"
    assert (ground.folder / "met").read_text() == (ground.root / "code.txt").read_text() == "code\n"
    assert not (ground.root / "new" / "file").exists()
    assert kept(ground) == {where: text}


def test_one_that_edits_the_request_of_its_run_has_not_done_its_part(ground: Ground) -> None:
    run = ground.shell(f"{WRITE} if [ $TRIES = 1 ]; then echo more >> {D}/initial-request.md; fi; echo DONE: ok")
    assert run["status"] == "completed" and summaries(run) == ["claimed DONE, but initial-request.md was changed", "ok"]
    assert (ground.root / D / "initial-request.md").read_text() == "# Initial Request\n\nAdd dark mode\n"


def test_a_file_that_was_deleted_is_there_again(ground: Ground) -> None:
    run = ground.shell(f"{WRITE} if [ $TRIES = 1 ]; then rm code.txt; fi; echo DONE: ok")
    assert run["status"] == "completed" and (ground.root / "code.txt").read_text() == "code\n"


def test_strays_of_the_last_attempt_are_put_aside_when_the_run_rests(ground: Ground) -> None:
    run = ground.shell(f"{WRITE} echo x >> code.txt; echo DONE: ok")
    assert run["status"] == "failed"
    assert (ground.root / "code.txt").read_text() == "code\n"
    assert any("were put aside: code.txt" in text for text in ground.workspace.warnings)


def test_a_file_with_changes_of_its_own_is_left_as_it_is_and_named(ground: Ground) -> None:
    """The text that it had is nowhere: putting it back would lose it."""
    mine = f"if [ $TRIES = 1 ]; then echo mine > {ground.root}/code.txt; fi"
    two = PIPELINE.replace("agent: {role: designer", "agent: {role: designer, touches: code.txt")
    two += """  - id: reader
    number: "2"
    agent: {role: designer, in: design.md, out: two.md}
    retry: {ERROR: 1}
    on: {ERROR: halt}
"""
    run = ground.shell(
        f"{WRITE} {mine}; if [ $TRIES = 2 ]; then echo theirs > code.txt; fi; echo DONE: ok", pipeline=two
    )
    assert run["status"] == "completed", summaries(run)
    assert (ground.root / "code.txt").read_text() == "theirs\n" and kept(ground) == {}
    assert any("had changes before: code.txt" in text for text in ground.workspace.warnings)


@pytest.mark.parametrize("link", ["{0}/theirs", "{0}/nothing", "../../../code.txt"])
def test_a_link_in_the_place_of_an_output_is_put_aside_before_anybody_writes_there(ground: Ground, link: str) -> None:
    (ground.folder / "theirs").write_text("theirs\n")
    to = link.format(ground.folder)
    first = f'mkdir -p "$(dirname "$TENUTO_OUTPUTS")"; ln -s {to} "$TENUTO_OUTPUTS"'
    run = ground.shell(f"if [ $TRIES = 1 ]; then {first}; else {WRITE} :; fi; echo DONE: ok")
    assert run["status"] == "completed", summaries(run)
    assert (ground.folder / "theirs").read_text() == "theirs\n" and not (ground.folder / "nothing").exists()
    assert (ground.root / "code.txt").read_text() == "code\n"
    assert (ground.root / D / "design.md").read_text() == "# Design\n" and kept(ground) == {f"{D}/design.md": to}


def test_a_pipe_in_the_place_of_an_output_is_put_aside_too(ground: Ground) -> None:
    """Whoever writes there would wait for ever."""
    first = 'mkdir -p "$(dirname "$TENUTO_OUTPUTS")"; mkfifo "$TENUTO_OUTPUTS"'
    run = ground.shell(f"if [ $TRIES = 1 ]; then {first}; else {WRITE} :; fi; echo DONE: ok")
    assert run["status"] == "completed", summaries(run)
    assert (ground.root / D / "design.md").read_text() == "# Design\n"


def test_an_output_that_is_one_file_with_another_is_parted_from_it(ground: Ground) -> None:
    """What is written to the one would be written to the other."""
    theirs = ground.folder / "theirs"
    theirs.write_text("theirs\n")
    first = f'mkdir -p "$(dirname "$TENUTO_OUTPUTS")"; ln {theirs} "$TENUTO_OUTPUTS"; echo "ERROR: later"; exit'
    run = ground.shell(f"if [ $TRIES = 1 ]; then {first}; else {WRITE} :; fi; echo DONE: ok")
    assert run["status"] == "completed", summaries(run)
    assert theirs.read_text() == "theirs\n" and theirs.stat().st_nlink == 1


def test_a_folder_of_the_documents_that_became_a_link_is_put_aside(ground: Ground) -> None:
    (ground.folder / "away").mkdir()
    pipeline = PIPELINE.replace("out: design.md", "out: parts/design.md")
    first = f"rm -rf {D}/parts; ln -s {ground.folder}/away {D}/parts; echo x > {D}/parts/design.md"
    run = ground.shell(f"if [ $TRIES = 1 ]; then {first}; else {WRITE} :; fi; echo DONE: ok", pipeline=pipeline)
    assert run["status"] == "completed", summaries(run)
    assert (ground.folder / "away" / "design.md").read_text() == "x\n"
    assert (ground.root / D / "parts" / "design.md").read_text() == "# Design\n"


def test_a_second_run_in_the_same_work_tree_is_refused_while_the_first_is_driven(ground: Ground) -> None:
    """Their agents would take each other's files for strays. Afterwards it goes on."""
    (ground.root / ".tenuto" / "pipelines" / "small.yaml").write_text(PIPELINE)
    first = start(tenuto.open(str(ground.root)), "One", "small")["id"]
    other = start(tenuto.open(str(ground.root)), "Two", "small")["id"]
    workspace = tenuto.open(str(ground.root))
    with alone_in_tree(workspace, first):
        with pytest.raises(Refused, match=f"run {first} is at work in this work tree"):
            Engine(workspace, other, Roster("command:true"), {}).drive()
        with pytest.raises(Refused, match="is at work"):
            refuse_beside(workspace, "")
        assert tenuto.open(str(ground.root)).load(other)["attempts"] == {}
    refuse_beside(workspace, "")


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("DONE: one\\nERROR: two", "ERROR"),
        ("ERROR: one\\nDONE: two", "ERROR"),
        ("DONE: one\\n\\nERROR: no, sorry", "ERROR"),
        ("ERROR: first try\\n\\nwent on\\n\\nDONE: two", "DONE"),
        ("DONE: one\\nDONE: one", "DONE"),
    ],
)
def test_one_that_answers_twice(ground: Ground, reply: str, verdict: str) -> None:
    """Two different verdicts in the last paragraph are none; otherwise the last line counts."""
    run = ground.shell(f"{WRITE} printf '{reply}\\n'")
    assert run["attempts"]["design-1-designer-1"]["verdict"] == verdict


def test_one_that_floods_its_output_is_bounded_and_its_last_line_counts(ground: Ground) -> None:
    run = ground.shell(f"{WRITE} head -c 40000000 /dev/zero | tr '\\0' x; echo; echo DONE: at last")
    assert run["status"] == "completed" and summaries(run) == ["at last"]
    log = Path(ground.workspace.state, "attempts/add-dark-mode/design-1-designer-1/1/stdout")
    assert log.stat().st_size < 40 << 20


def test_one_that_prints_binary_rubbish_is_an_error_and_not_a_crash(ground: Ground) -> None:
    run = ground.shell(f"{WRITE} head -c 100000 /dev/urandom; if [ $TRIES = 2 ]; then echo; echo DONE: fine; fi")
    assert run["status"] in ("completed", "failed") and run["attempts"]["design-1-designer-1"]["verdict"] == "ERROR"


def test_one_that_does_not_read_its_prompt_is_not_waited_for(ground: Ground) -> None:
    agent = ground.folder / "deaf.sh"
    agent.write_text(f"#!/bin/sh\nexec < /dev/null\n{WRITE} echo DONE: fine\n")
    agent.chmod(0o755)
    assert ground.drive(str(agent))["status"] == "completed"


def test_one_that_decides_its_own_gate_is_refused(ground: Ground) -> None:
    """Below a supervisor nobody approves."""
    package, python = quote(str(Path(tenuto.__file__).parents[1])), quote(sys.executable)
    run = ground.shell(
        f"{WRITE} PYTHONPATH={package} {python} -m tenuto cancel add-dark-mode > {ground.folder}/said 2>&1; "
        "echo DONE: fine"
    )
    assert run["status"] == "completed" and "only a person can" in (ground.folder / "said").read_text()


def test_an_agent_that_stops_its_supervisor_does_not_hang_the_run(ground: Ground) -> None:
    """Stopped, it holds no time limit: the engine tells it to go on, and what is too late is ended."""
    run = ground.shell("[ $TRIES = 2 ] || { kill -STOP $PPID; sleep 600; }; " + WRITE + 'echo "DONE: designed"', "5s")
    assert [attempt["verdict"] for attempt in run["attempts"].values()] == ["ERROR", "DONE"]
    assert "the time limit was reached" in summaries(run)[0]


def test_names_and_texts_that_are_no_text_are_told_and_end_nothing(ground: Ground) -> None:
    """Bytes that are no UTF-8, in the name of a file, in a file that the next agent is shown, in the subject of a
    commit."""
    name = "$(printf 'odd\\nname\\377')"
    commit = "git add -A; git -c user.name=a -c user.email=a@b commit -qm \"$(printf '\\351')\""
    run = ground.shell(
        f'[ $TRIES = 2 ] || {{ printf "\\351" > code.txt; touch "{name}"; {commit}; }}; {WRITE} echo "DONE: designed"'
    )
    first, second = run["attempts"].values()
    assert (first["verdict"], second["verdict"], run["status"]) == ("ERROR", "DONE", "completed")
    assert "files outside the boundary were changed: code.txt, odd\nname\\xff" in first["summary"]


def test_a_change_that_is_no_text_is_shown_to_a_reviewer_all_the_same(ground: Ground) -> None:
    """A file in Latin-1 that somebody changed since the run's start."""
    (ground.root / "code.txt").write_bytes("caf\u00e9\n".encode("latin-1"))
    pipeline = PIPELINE.replace(
        "out: design.md, memory: write", "out: design.md, memory: write, touches: '**', context: [git-diff]"
    )
    shown = pipeline + "  - {id: review, agent: {role: r-quality, out: review.md, context: [git-diff]}}\n"
    run = ground.shell(WRITE + "printf 'th\\351\\n' > code.txt; echo 'DONE: designed'", pipeline=shown)
    assert run["status"] == "completed"
    assert "th\\xe9" in (ground.folder / "prompt").read_text()


def test_an_agent_that_removes_what_tenuto_keeps_ends_the_engine_and_is_not_started_for_ever(ground: Ground) -> None:
    with pytest.raises(Refused, match="was removed while run add-dark-mode was under way"):
        ground.shell(WRITE + "rm -rf .git; echo 'DONE: designed'")
    assert (ground.folder / "tries").read_text().count("x") == 1


@pytest.mark.parametrize("what", ["$own", "$own/*/*"], ids=["all of it", "what is in it"])
def test_nor_is_one_that_removes_every_trace_of_its_own(ground: Ground, what: str) -> None:
    """It looks as if it had never started, which uses no try: a few times, then it counts."""
    own = "name=${TENUTO_ATTEMPT#*.}; own=.git/tenuto/attempts/$TENUTO_RUN/${name%.*}; "
    run = ground.shell(f"{own} {WRITE} rm -rf {what}; echo 'DONE: designed'")
    assert run["status"] == "paused" and "interrupted too often" in run["pause"]["reason"]
    assert len(run["attempts"]) < 10 and "leave a trace" in summaries(run)[-1]


@pytest.mark.parametrize("until", ["2099-01-01T00:00:00Z", "soon"])
def test_one_that_wants_to_be_parked_for_years_has_said_error(ground: Ground, until: str) -> None:
    run = ground.shell(f"echo 'PARKED: {until} why'")
    assert run["status"] == "failed" and f"it may not work until '{until}', which is" in summaries(run)[0]


def test_a_revision_that_was_not_to_be_asked_for_is_named_in_the_failure(ground: Ground) -> None:
    run = ground.shell(f"{WRITE} echo 'NEEDS_REVISION: hmm'")
    assert run["failure"]["error"].endswith("it asked for a revision, which it may not: hmm")


def test_memory_is_not_spoken_of_where_the_pipeline_has_none(ground: Ground) -> None:
    for memory, said in (("memory: run\n", True), ("", False)):
        pipeline = PIPELINE.replace("memory: run\n", memory).replace("given: [initial-request.md, memory.md]\n", "")
        ground.shell(f"{WRITE} echo DONE: ok", pipeline=pipeline.replace(", memory: write", ""))
        assert ("Do not change memory.md" in (ground.folder / "prompt").read_text()) is said
