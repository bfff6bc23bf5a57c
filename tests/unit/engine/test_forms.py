"""Forms: a gate asks for fields; they are answered on the command line, at a terminal, in a file; signed, recorded,
and used by the steps behind the gate."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.core.fold import apply
from tenuto.engine.begin import fork
from tests.support.terminal import start_at_terminal
from tests.support.trusting import trust
from tests.unit.engine.conftest import Said

Say = Callable[..., Said]
PIPELINE = """\
name: release
documents: docs/{slug}
switches: {ask: true}
steps:
  - id: draft
    agent: {role: designer, out: design.md}
  - id: agree
    when: ask
    gate:
      prompt: Release it?
      show: [design.md]
      fields:
        env: {of: [staging, prod], description: Where it goes.}
        replicas: 2
        canary: true
        regions: {type: several, of: [eu, us], required: false}
        why: text
  - id: really
    when: {answer: agree.env, is: prod}
    gate: {prompt: "To {answers.agree.env}, because {answers.agree.why}?"}
  - id: tell
    agent:
      {role: designer, id: teller, focus: "on {answers.agree.env}: {answers.agree.why}", task: "to {answers.agree.env}"}
    when: ask
  - id: ship
    command:
      run: [printf, "%s|", "{answers.agree.env}", "{answers.agree.replicas}", "{answers.agree.regions}",
            "{answers.agree.why}", "{slug}"]
      env: {WHY: "{answers.agree.why}"}
      stdout: shipped.txt
"""
AGENT = ("--agent", "scripted:answers.yaml")
HOSTILE = 'it\'s "time"; $(rm -rf /) {slug}'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repo"
    (root / ".tenuto/pipelines").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".tenuto/pipelines/release.yaml").write_text(PIPELINE)
    (root / "answers.yaml").write_text("answers: []\n")
    trust(root)
    monkeypatch.chdir(root)
    return root


def begin(say: Say, *words: str) -> Said:
    said = say("run", "Add x", "--pipeline", "release", *AGENT, "--name", "x", *words)
    assert said.status == 5, said.err
    return said


def answers_of(place: Path) -> Any:
    return tenuto.open(str(place)).load("x")["decisions"][-1]["answers"]


def test_answers_are_recorded_and_used_behind_the_gate(place: Path, say: Say) -> None:
    """In a command each is one argument, whatever it holds; in a prompt free text is data."""
    waits = begin(say).out
    assert "asks for env (one of staging, prod; Where it goes.)" in waits
    assert "tenuto approve x --set env=... --set why=..." in waits
    assert "asks for replicas (a number; 2 unless you say otherwise)" in say("status").out
    fields = say("status", "--json").data["gate"]["fields"]
    assert list(fields) == ["env", "replicas", "canary", "regions", "why"] and fields["replicas"]["default"] == 2

    words = ("--set", "env=staging", "--set", "regions=eu", "--set", "regions=us", "--set", f"why={HOSTILE}")
    assert say("approve", *words).status == 0
    assert answers_of(place) == {
        "env": "staging",
        "replicas": 2,
        "canary": True,
        "regions": ["eu", "us"],
        "why": HOSTILE,
    }
    assert "env=staging" in say("history").out
    said = say("run", *AGENT)
    assert said.status == 0, said.err
    assert "really is left out: this does not hold: agree.env is prod" in said.err
    assert (place / "docs/x/shipped.txt").read_text() == f"staging|2|eu, us|{HOSTILE}|x|"
    workspace = tenuto.open(str(place))
    prompt = (Path(workspace.state) / "attempts/x/tell-1-teller-1/1/prompt").read_text()
    assert "- focus: on staging: (the answer agree.why, in the data below)" in prompt
    assert f"agree.why: {HOSTILE}" in prompt[prompt.index('<data name="answers"') :]
    assert workspace.load("x")["attempts"]["tell-1-teller-1"]["task"] == "to staging"


def test_the_other_way_and_a_later_gate_that_names_the_answers(place: Path, say: Say) -> None:
    begin(say)
    assert say("approve", "--set", "env=prod", "--set", "why=it\nis time").status == 0
    said = say("run", *AGENT)
    assert said.status == 5 and "To prod, because it is time?" in said.out


def test_a_plan_shows_both_ways(place: Path, say: Say) -> None:
    assert "(only where agree.env is prod)" in say("plan", "--pipeline", "release").out


@pytest.mark.parametrize(
    ("words", "code", "status", "part"),
    [
        ((), "bad-answers", 2, "'env' is missing: one of staging, prod"),
        (("--set", "env=prod"), "bad-answers", 2, "'why' is missing: text"),
        (("--set", "env=qa", "--set", "why=x"), "bad-answers", 2, "'qa' is none of the choices"),
        (("--set", "env=prod", "--set", "why=x", "--set", "replicas=two"), "bad-answers", 2, "a number is needed"),
        (("--set", "env=prod", "--set", "why=x", "--set", "canary=maybe"), "bad-answers", 2, "true or false is needed"),
        (("--set", "env=prod", "--set", "why=x", "--set", "evn=prod"), "bad-answers", 2, "did you mean 'env'?"),
        (("--set", "env"), "bad-usage", 2, "--set NAME=VALUE"),
        (("--answers-file", "none.yaml"), "no-file", 3, "there is no file none.yaml"),
    ],
)
def test_without_a_terminal_what_is_wrong_is_named_and_nothing_is_written(
    place: Path, say: Say, words: tuple[str, ...], code: str, status: int, part: str
) -> None:
    begin(say)
    version = tenuto.open(str(place)).load("x")["version"]
    said = say("approve", "--json", *words)
    assert (said.status, said.error["code"]) == (status, code)
    assert part in said.error["message"] + said.error["hint"]
    assert tenuto.open(str(place)).load("x")["version"] == version


def test_answers_come_from_a_file_and_an_option_counts_more(place: Path, say: Say) -> None:
    begin(say)
    (place / "a.yaml").write_text("env: staging\nregions: [us]\nwhy: planned\ncanary: false\n")
    assert say("approve", "--answers-file", "a.yaml", "--set", "env=prod", "--set", "regions=eu").status == 0
    expected = {"env": "prod", "replicas": 2, "canary": False, "regions": ["eu"], "why": "planned"}
    assert answers_of(place) == expected


def test_what_was_shown_has_changed_meanwhile(place: Path, say: Say) -> None:
    begin(say)
    (place / "docs/x/design.md").write_text("another\n")
    words = ("--set", "env=prod", "--set", "why=x", "--json")
    assert say("approve", *words).error["code"] == "gate-stale"


def test_reject_and_revise_have_no_such_option(place: Path, say: Say) -> None:
    begin(say)
    assert say("reject", "--set", "env=prod").status == 2
    assert tenuto.open(str(place)).load("x")["status"] == "waiting_gate"


def test_given_in_advance_an_approval_has_defaults_only(place: Path, say: Say) -> None:
    """What has none is nobody's to answer: the run waits."""
    said = begin(say, "--no-input=approve")
    assert "nobody can answer env, why in advance" in said.err
    text = PIPELINE.replace("{of: [staging, prod], ", "{of: [staging, prod], default: staging, ")
    (place / ".tenuto/pipelines/release.yaml").write_text(text.replace("why: text", "why: {default: planned}"))
    said = say("run", "Add y", "--pipeline", "release", *AGENT, "--name", "y", "--no-input=approve")
    assert said.status == 0, said.err
    assert tenuto.open(str(place)).load("y")["decisions"][0]["answers"]["why"] == "planned"


def test_a_command_whose_answer_nobody_was_asked_for_is_not_started(place: Path, say: Say) -> None:
    said = say("run", "Add x", "--pipeline", "release", *AGENT, "--name", "x", "--switch", "ask=off")
    assert said.status == 1
    assert "nobody has answered agree.env, agree.replicas" in said.out + said.err
    assert (place / "docs/x/shipped.txt").read_text() == ""


def test_a_fork_behind_the_gate_has_its_answers(place: Path, say: Say) -> None:
    begin(say)
    assert say("approve", "--set", "env=staging", "--set", "why=x").status == 0
    assert say("run", *AGENT).status == 0
    fork(tenuto.open(str(place)), "x", "really", name="z")
    assert say("run", "--run", "z", *AGENT).status == 0
    assert (place / "docs/z/shipped.txt").read_text() == "staging|2||x|z|"


# ---- at a terminal


class Conversation:
    """`tenuto approve x` at a terminal of its own."""

    def __init__(self, place: Path, *words: str) -> None:
        inner = {"PATH": os.environ["PATH"], "HOME": str(place), "PYTHONPATH": str(Path(tenuto.__file__).parents[1])}
        command = [sys.executable, "-m", "tenuto", "approve", "x", *words]
        self.program, self.terminal = start_at_terminal(command, cwd=place, env=inner)
        self.unread = ""

    def hears(self, text: str) -> str:
        """Everything up to this text; an end before it is an OSError."""
        while text not in self.unread:
            self.unread += os.read(self.terminal, 4096).decode("utf-8", "replace")
        before, _, self.unread = self.unread.partition(text)
        return before

    def types(self, text: str) -> None:
        os.write(self.terminal, text.encode() + b"\n")

    def ends(self) -> int:
        status = self.program.wait()
        os.close(self.terminal)
        return status


def test_at_a_terminal_what_is_missing_is_asked_for_one_by_one(place: Path, say: Say) -> None:
    """Until it fits. What has a default, or may be left out, is not asked for."""
    begin(say)
    talk = Conversation(place, "--set", "replicas=3")
    talk.hears("env (one of staging, prod; Where it goes.): ")
    talk.types("qa")
    talk.hears("'qa' is none of the choices")
    talk.hears("env (one of staging, prod; Where it goes.): ")
    talk.types("prod")
    talk.hears("why (text): ")
    talk.types("because")
    talk.hears("approve recorded")
    assert talk.ends() == 0
    assert answers_of(place) == {"env": "prod", "replicas": 3, "canary": True, "why": "because"}


def test_killed_while_it_asks_nothing_is_decided(place: Path, say: Say) -> None:
    begin(say)
    talk = Conversation(place)
    talk.hears("env (")
    talk.program.send_signal(signal.SIGKILL)
    assert talk.ends() == -signal.SIGKILL
    run = tenuto.open(str(place)).load("x")
    assert (run["status"], run["decisions"]) == ("waiting_gate", [])
    assert say("approve", "--set", "env=prod", "--set", "why=x").status == 0


# ---- signed


@pytest.fixture
def key(place: Path, tmp_path: Path, needs: Callable[..., None]) -> str:
    needs("ssh-keygen")
    path = tmp_path / "ada"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", str(path)], check=True)
    (place / ".tenuto/config.yaml").write_text("gates: signed\n")
    (place / ".tenuto/signers").write_text("ada " + path.with_suffix(".pub").read_text())
    trust(place)
    return str(path)


def test_a_signature_covers_the_answers(place: Path, say: Say, key: str) -> None:
    begin(say)
    by = ("--sign-with", key, "--as", "ada")
    assert say("approve", *by, "--json").error["code"] == "bad-answers"
    assert say("approve", "--set", "env=staging", "--set", "why=x", *by).status == 0
    assert say("run", *AGENT).status == 0
    assert say("verify").status == 0


def test_answers_that_were_tampered_with_are_found(place: Path, say: Say, key: str) -> None:
    """As somebody would who knows the journal well: the decision is written with ada's signature and other answers."""
    begin(say)
    from tenuto.engine.gates import sign, text_to_sign

    workspace = tenuto.open(str(place))
    given = {"env": "staging", "why": "x"}
    signature = sign(text_to_sign(workspace.load("x"), "approve", "", given), key)
    with workspace.journal.write() as tx:
        run = tx.load("x")
        assert run is not None and run["gate"] is not None
        forged: Any = {
            "type": "GateDecided",
            "v": 2,
            "at": run["updated_at"],
            "by": "ada",
            "gate": run["gate"]["id"],
            "name": "agree",
            "step": "agree",
            "decision": "approve",
            "approved": True,
            "feedback": "",
            "who": "ada",
            "proof": {"level": "signed", "signature": signature, "signer": "ada"},
            "answers": {"env": "prod", "replicas": 2, "canary": True, "why": "x"},
        }
        expected = run["version"]
        apply(run, forged)
        tx.append("x", expected, [forged], run)
    said = say("run", *AGENT, "--json")
    assert said.error["code"] == "forged-decision"
    assert say("verify").status == 1
    assert not (place / "docs/x/shipped.txt").exists()
