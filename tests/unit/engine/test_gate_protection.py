"""How gates are protected: guarded, signed, isolated. What each level refuses, and what it finds out afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tenuto
from prove.sessions import MARKS
from tenuto.core.fold import FOLD_VERSION, apply, fold
from tenuto.encoding import digest, dumps, loads
from tenuto.engine.begin import start
from tenuto.engine.gates import isolation
from tenuto.errors import Refused
from tests.support.trusting import trust
from tests.unit.engine.conftest import Said

GATED = """\
name: gated
documents: docs/{slug}
steps:
  - id: draft
    agent: {role: designer, out: design.md}
  - id: look
    gate: {name: look, show: [design.md], prompt: "Is the design good?", revise: draft}
  - id: build
    agent: {role: implementer, out: built.md}
"""
Say = Callable[..., Said]


@pytest.fixture
def gated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose run stops at a gate between two agents."""
    root = tmp_path / "repo"
    (root / ".tenuto/pipelines").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".tenuto/pipelines/gated.yaml").write_text(GATED)
    (root / "answers.yaml").write_text("answers: []\n")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def key(gated: Path, tmp_path: Path, needs: Callable[..., None]) -> str:
    """ada's key, and a repository in which only she decides."""
    needs("ssh-keygen")
    path = tmp_path / "ada"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", str(path)], check=True)
    (gated / ".tenuto/config.yaml").write_text("gates: signed\n")
    (gated / ".tenuto/signers").write_text("ada " + path.with_suffix(".pub").read_text())
    trust(gated)
    return str(path)


def begin(say: Say) -> None:
    said = say("run", "Add x", "--pipeline", "gated", "--agent", "scripted:answers.yaml", "--name", "x")
    assert said.status == 5, said.err


def go_on(say: Say) -> Said:
    return say("run", "--agent", "scripted:answers.yaml", "--json")


@pytest.mark.parametrize("variable", [*MARKS, "TENUTO_ATTEMPT"])
@pytest.mark.parametrize("decision", ["approve", "reject", "revise"])
def test_a_model_in_a_session_of_yours_cannot_decide(
    gated: Path, say: Say, monkeypatch: pytest.MonkeyPatch, variable: str, decision: str
) -> None:
    begin(say)
    monkeypatch.setenv(variable, "1")
    said = say(decision, "--feedback", "fine", "--json")
    assert (said.status, said.error["code"]) == (4, "agent-decides")
    assert tenuto.open(str(gated)).load("x")["status"] == "waiting_gate"


RESTS = {
    "ticket": lambda workspace: workspace.flow.resume_workflow("x"),
    "staged-standard": lambda workspace: workspace.staged.resume(),
    "feature-dev": lambda workspace: workspace.feature_state.resume(),
}


@pytest.mark.parametrize("variable", ["CLAUDECODE", "TENUTO_ATTEMPT"])
@pytest.mark.parametrize("pipeline", RESTS)
def test_no_dialect_has_a_word_with_which_a_model_ends_a_rest(
    gated: Path, monkeypatch: pytest.MonkeyPatch, variable: str, pipeline: str
) -> None:
    """What waits for `tenuto resume` waits for a person, however the run is shown."""
    workspace: Any = tenuto.open(str(gated))
    start(workspace, "Add x", pipeline, name="x")
    with workspace.turn() as turn:
        turn.do("x", {"do": "Pause", "reason": "every try was used up"})
    with monkeypatch.context() as inside:
        inside.setenv(variable, "1")
        with pytest.raises(Refused) as refusal:
            RESTS[pipeline](workspace)
    assert (refusal.value.code, workspace.load("x")["status"]) == ("agent-decides", "paused")
    RESTS[pipeline](workspace)
    assert workspace.load("x")["status"] == "running"


def test_an_edit_of_its_file_does_not_end_the_rest_of_a_run(gated: Path) -> None:
    workspace: Any = tenuto.open(str(gated))
    start(workspace, "Add x", "staged-standard", name="x")
    with workspace.turn() as turn:
        turn.do("x", {"do": "Pause", "reason": "every try was used up"})
    file = gated / ".agents/tmp/state.json"
    file.write_text(dumps({**loads(file.read_text()), "status": "in_progress"}))
    with pytest.raises(Refused) as refusal:
        workspace.staged.read()
    assert (refusal.value.details["reason"], workspace.load("x")["status"]) == ("engine-driven", "paused")


def test_where_decisions_are_signed_by_now_none_is_given_in_advance(gated: Path, say: Say) -> None:
    """The stricter counts: what the run began with, and what holds now."""
    begin(say)
    (gated / ".tenuto/config.yaml").write_text("gates: signed\n")
    (gated / ".tenuto/signers").write_text("ada ssh-ed25519 AAAA\n")
    trust(gated)
    said = say("run", "--agent", "scripted:answers.yaml", "--no-input=approve", "--json")
    assert said.error["code"] == "not-signed" and not (gated / "docs/x/built.md").exists()


def test_status_names_the_level(gated: Path, say: Say, key: str) -> None:
    begin(say)
    assert "gates are signed" in say("status").out
    assert say("status", "--json").data["gates"] == "signed"


def test_a_signed_decision_opens_the_gate(gated: Path, say: Say, key: str) -> None:
    begin(say)
    assert say("approve", "--sign-with", key, "--as", "ada").status == 0
    assert go_on(say).status == 0
    assert say("verify").status == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "not-signed"),
        (("--as", "ada"), "not-signed"),
        (("--sign-with", "{key}", "--as", "bob"), "bad-signature"),
        (("--sign-with", "{other}", "--as", "ada"), "bad-signature"),
    ],
)
def test_what_is_not_signed_by_one_of_them_opens_nothing(
    gated: Path, say: Say, key: str, tmp_path: Path, words: tuple[str, ...], code: str
) -> None:
    begin(say)
    other = tmp_path / "mallory"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    said = say("approve", "--json", *(word.format(key=key, other=other) for word in words))
    assert (said.status, said.error["code"]) == (4, code)
    assert tenuto.open(str(gated)).load("x")["gate"] is not None


def test_whoever_rewrites_the_settings_gains_nothing(gated: Path, say: Say, key: str, tmp_path: Path) -> None:
    """They lie where agents can write; what the run began with does not."""
    begin(say)
    other = tmp_path / "mallory"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    (gated / ".tenuto/signers").write_text("ada " + other.with_suffix(".pub").read_text())
    assert say("approve", "--sign-with", str(other), "--as", "ada", "--json").error["code"] == "bad-signature"
    (gated / ".tenuto/config.yaml").write_text("gates: guarded\n")
    assert say("approve", "--json").error["code"] == "not-signed"
    assert say("run", "--agent", "scripted:answers.yaml", "--no-input=approve", "--json").error["code"] == "not-signed"
    assert say("approve", "--sign-with", key, "--as", "ada").status == 0


def test_a_signature_counts_for_exactly_one_gate(gated: Path, say: Say, key: str) -> None:
    """Replayed at the next gate of the same name, with the very same files shown, it is nobody's."""
    begin(say)
    assert say("revise", "--feedback", "shorter", "--sign-with", key, "--as", "ada").status == 0
    go_on(say)
    workspace = tenuto.open(str(gated))
    with workspace.journal.read() as reader:
        (first,) = [event for event in reader.events("x") if event["type"] == "GateDecided"]
    from tenuto.engine.gates import decide_gate

    with pytest.raises(tenuto.TenutoError) as refusal:
        decide_gate(workspace, "x", "approve", "", {"gates": "signed"}, first["proof"]["signature"], "ada")
    assert refusal.value.code == "bad-signature"


def test_nobody_may_sign_before_somebody_is_named(gated: Path, say: Say) -> None:
    (gated / ".tenuto/config.yaml").write_text("gates: signed\n")
    said = say("run", "Add x", "--pipeline", "gated", "--agent", "scripted:answers.yaml", "--json")
    assert (said.status, said.error["code"]) == (4, "no-signers")


# ---- who writes to the database directly


def forge(root: Path, *events: Any, run: str = "x") -> None:
    """As somebody would who knows the journal well: digests, chain, head and kept state are all right."""
    workspace = tenuto.open(str(root))
    with workspace.journal.write() as tx:
        found = tx.load(run)
        assert found is not None
        made: list[Any] = [{"v": 2, "at": found["updated_at"], "by": "ada", **event} for event in events]
        expected = found["version"]
        for event in made:
            apply(found, event)
        tx.append(run, expected, made, found)


APPROVAL = {
    "type": "GateDecided",
    "gate": "gate-1",
    "name": "look",
    "step": "look",
    "decision": "approve",
    "approved": True,
    "feedback": "",
    "who": "ada",
    "proof": {"level": "signed", "signature": "-----BEGIN SSH SIGNATURE-----", "signer": "ada"},
}


def test_a_forged_approval_is_named_and_not_carried_on(gated: Path, say: Say, key: str) -> None:
    begin(say)
    forge(gated, APPROVAL)
    said = go_on(say)
    assert said.error["code"] == "forged-decision"
    assert not (gated / "docs/x/built.md").exists()
    found = say("verify", "--json")
    assert found.status == 1 and "is not ada's" in found.error["message"]


def test_a_gate_that_was_walked_around_is_named(gated: Path, say: Say, key: str) -> None:
    """No decision at all: the step behind the gate simply begins."""
    begin(say)
    forge(gated, {"type": "StepStarted", "step": "build", "item": None, "iteration": 1, "leg": None, "key": "k"})
    found = say("verify", "--json")
    assert found.status == 1
    assert "build began while gate-1 was open" in found.error["message"]
    assert "build began without an approval of 'look'" in found.error["message"]
    assert go_on(say).error["code"] == "forged-decision"


def test_an_approval_of_a_gate_that_was_not_open_is_named(gated: Path, say: Say, key: str) -> None:
    begin(say)
    forge(gated, {**APPROVAL, "gate": "gate-7"})
    assert "decided without being open" in say("verify", "--json").error["message"]
    assert go_on(say).error["code"] == "forged-decision"


def test_a_kept_state_that_nobody_decided_is_not_carried_on(gated: Path, say: Say, key: str) -> None:
    """The kept state is a cache, written by whoever can write to the file."""
    begin(say)
    workspace = tenuto.open(str(gated))
    with workspace.journal.read() as reader:
        run = fold([*reader.events("x"), {"v": 2, "at": "2026-11-15T10:00:00.000Z", "by": "ada", **APPROVAL}])
    with closing(sqlite3.connect(gated / ".git/tenuto/journal.db", isolation_level=None)) as database:
        database.execute(
            "UPDATE state SET seq=?, fold=?, body=? WHERE run='x'", (run["version"] - 1, FOLD_VERSION, dumps(run))
        )
    assert go_on(say).error["code"] == "forged-decision"


def test_a_copy_of_your_own_finds_out_a_journal_that_was_rewritten_from_the_start(
    gated: Path, say: Say, key: str, tmp_path: Path
) -> None:
    """Even the level that the run began with can be rewritten; not the list of signers in your pocket."""
    mine = tmp_path / "mine"
    shutil.copy(gated / ".tenuto/signers", mine)
    (gated / ".tenuto/config.yaml").write_text("gates: guarded\n")
    begin(say)
    assert say("approve").status == 0
    assert say("verify").status == 0
    found = say("verify", "--signers", str(mine), "--json")
    assert found.status == 1 and "without a signature" in found.error["message"]


def without_its_gate(root: Path) -> str:
    """The definition of x, stored a second time with a gate that is off; its hash."""
    workspace = tenuto.open(str(root))
    with workspace.journal.write() as tx:
        run = tx.load("x")
        body = tx.blob(run["pipeline"]["hash"] or "") if run else None
        assert body is not None
        definition = loads(body.decode())
        (gate,) = [step for step in definition["pipeline"]["steps"] if step["kind"] == "gate"]
        gate["when"] = "off"
        definition["pipeline"]["switches"]["off"] = False
        soft = dumps(definition).encode()
        tx.put_blob(digest(soft), soft)
    workspace.journal.close()
    return digest(soft)


def test_another_definition_under_way_is_named_and_not_carried_on(gated: Path, say: Say, key: str) -> None:
    begin(say)
    ref = {"name": "gated", "hash": without_its_gate(gated)}
    forge(gated, {"type": "DriverChanged", "driver": "engine", "pipeline": ref})
    said = go_on(say)
    assert said.error["code"] == "forged-decision" and "another definition under way" in said.error["message"]
    assert "another definition under way" in say("verify", "--json").error["message"]


def test_nor_by_the_engine_that_is_at_work_already(gated: Path, say: Say, key: str, tmp_path: Path) -> None:
    """Its agent writes it, before the gate was even reached: the next start is refused."""
    script = tmp_path / "forge.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom tests.unit.engine import test_gate_protection as tests\n"
        "root = Path(sys.argv[1])\nref = {'name': 'gated', 'hash': tests.without_its_gate(root)}\n"
        "tests.forge(root, {'type': 'DriverChanged', 'driver': 'engine', 'pipeline': ref})\n"
    )
    package = Path(tenuto.__file__).parents[1]
    answers = {
        "answers": [{"for": {"step": "draft"}, "run": f"PYTHONPATH={package} {sys.executable} {script} {gated}"}]
    }
    (gated / "answers.yaml").write_text(dumps(answers))
    said = say("run", "Add x", "--pipeline", "gated", "--agent", "scripted:answers.yaml", "--name", "x", "--json")
    assert said.error["code"] == "forged-decision", said.out
    assert not (gated / "docs/x/built.md").exists()


def test_a_person_takes_no_signed_run_to_another_pipeline(gated: Path, say: Say, key: str) -> None:
    begin(say)
    (gated / ".tenuto/pipelines/soft.yaml").write_text("name: soft\nsteps: [{id: a, agent: {role: designer}}]\n")
    said = say("run", "--run", "x", "--pipeline", "soft", "--agent", "scripted:answers.yaml", "--json")
    assert said.error["code"] == "protected", said.out


def test_a_signature_counts_in_no_other_repository(gated: Path, say: Say, key: str, tmp_path: Path) -> None:
    """The same run by name, request and text, in another clone: what was signed there was not decided here."""
    begin(say)
    assert say("approve", "x", "--sign-with", key, "--as", "ada").status == 0
    workspace = tenuto.open(str(gated))
    with workspace.journal.read() as reader:
        (signed,) = [event for event in reader.events("x") if event["type"] == "GateDecided"]
    workspace.journal.close()
    shutil.copytree(gated, tmp_path / "clone", symlinks=True)
    shutil.rmtree(tmp_path / "clone/.git/tenuto")
    shutil.rmtree(tmp_path / "clone/docs")
    os.chdir(tmp_path / "clone")
    trust(tmp_path / "clone")
    begin(say)
    forge(tmp_path / "clone", {**APPROVAL, "proof": signed["proof"]})
    assert go_on(say).error["code"] == "forged-decision"


HIDING = {
    "a PID namespace of its own": "env -u TENUTO_ATTEMPT unshare -rpf --mount-proc {tenuto}",
    "no /proc": "env -u TENUTO_ATTEMPT unshare -rm sh -c 'mount -t tmpfs none /proc; {tenuto}'",
}


@pytest.mark.needs("unshare")
@pytest.mark.parametrize("how", HIDING.values(), ids=list(HIDING))
def test_an_agent_that_hides_what_is_above_it_decides_nothing(gated: Path, say: Say, tmp_path: Path, how: str) -> None:
    """Where nobody can tell who asks, while agents are at work, the answer is no."""
    begin(say)
    path = tmp_path / "agent.sh"
    tried = how.replace("{tenuto}", f"{sys.executable} -m tenuto approve x --json")
    path.write_text(f"cat >/dev/null\ncd {gated}\n{tried} >{tmp_path}/said 2>&1\necho 'ERROR: tried'\n")
    say("run", "Add z", "--pipeline", "gated", "--agent", f"command:sh {path}", "--name", "z")
    assert "agent-decides" in (tmp_path / "said").read_text()
    assert loads(say("status", "x", "--json").out)["data"]["status"] == "waiting_gate"


# ---- by hand


def test_a_run_led_by_hand_keeps_the_level_it_began_with(
    gated: Path, say: Say, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert say("context", "INIT task: Led by hand").status == 0
    assert say("context", "SET_GATE gate: design prompt: Good?").status == 0
    (gated / ".tenuto/config.yaml").write_text("gates: guarded\n")
    monkeypatch.setenv("CLAUDECODE", "1")
    said = say("context", "RESUME decision: approve")
    assert said.status != 0 and "signed" in said.out + said.err


# ---- forks


def test_a_fork_is_protected_as_its_source_was(gated: Path, say: Say, key: str) -> None:
    """Whoever softens the settings in between gains nothing; a signed approval is taken over, and can be checked."""
    begin(say)
    (gated / ".tenuto/config.yaml").write_text("gates: guarded\n")
    assert say("fork", "x", "--at", "draft", "--name", "soft").status == 0
    assert go_on(say).status == 5
    assert say("approve", "soft", "--json").error["code"] == "not-signed"
    assert say("approve", "x", "--sign-with", key, "--as", "ada").status == 0
    assert say("fork", "x", "--at", "build", "--name", "behind").status == 0
    assert go_on(say).data["status"] == "completed"
    assert say("verify").status == 0


def test_a_forged_approval_is_not_taken_over(gated: Path, say: Say, key: str) -> None:
    begin(say)
    forge(gated, APPROVAL)
    assert say("fork", "x", "--at", "build", "--json").error["code"] == "gate-ahead"
    assert say("fork", "x", "--at", "draft", "--name", "before-that", "--json").status == 0
    assert go_on(say).status == 5


def test_a_fork_that_somebody_wrote_behind_a_gate_is_named_and_not_carried_on(gated: Path, say: Say, key: str) -> None:
    """Its source never approved anything, whatever the fork says of it."""
    begin(say)
    assert say("fork", "x", "--at", "draft", "--name", "y").status == 0
    told = {"type": "Forked", "source": "x", "at_step": "build", "at_version": 99, "approved": ["look"]}
    forge(
        gated,
        told,
        {
            "type": "RouteTaken",
            "route": "",
            "queue": [{"step": "build", "mode": "", "only": [], "items": ""}],
            "resets": [],
            "carry": {},
            "reason": "",
        },
        run="y",
    )
    assert go_on(say).error["code"] == "forged-decision"
    assert "the approval of gate 'look' was carried over from x" in say("verify", "y", "--json").error["message"]
    assert not (gated / "docs/y/built.md").exists()


def test_where_decisions_are_signed_now_an_unsigned_approval_is_not_taken_over(gated: Path, say: Say, key: str) -> None:
    (gated / ".tenuto/config.yaml").write_text("gates: guarded\n")
    begin(say)
    assert say("approve", "x").status == 0
    (gated / ".tenuto/config.yaml").write_text("gates: signed\n")
    assert say("fork", "x", "--at", "build", "--json").error["code"] == "gate-ahead"


def test_a_model_does_not_fork_a_run_behind_its_gate(gated: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(say)
    assert say("approve", "x").status == 0
    monkeypatch.setenv("CLAUDECODE", "1")
    assert say("fork", "x", "--at", "build", "--json").error["code"] == "agent-decides"
    assert say("fork", "x", "--at", "look", "--json").status == 0


# ---- isolated


def behind(root: Path, *words: str) -> None:
    (root / ".tenuto/config.yaml").write_text(f"gates: isolated\nisolation: {dumps(list(words))}\n")
    trust(root)


@pytest.mark.parametrize("words", [(), ("env",), ("sh", "-c", "exit 3", "--"), ("no-such-program-anywhere",)])
def test_where_agents_would_not_be_isolated_none_is_started(gated: Path, say: Say, words: tuple[str, ...]) -> None:
    behind(gated, *words)
    said = say("run", "Add x", "--pipeline", "gated", "--agent", "scripted:answers.yaml", "--json")
    assert said.status == 4, (said.out, said.err)
    assert said.error["code"] == "not-isolated"
    assert not (gated / "docs/add-x/design.md").exists()
    assert say("list", "--json").data["runs"] == [], "what is refused is not written"


NOBODY = (
    "setpriv",
    f"--reuid={pwd.getpwnam('nobody').pw_uid}",
    f"--regid={pwd.getpwnam('nobody').pw_gid}",
    "--clear-groups",
    "--",
)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
@pytest.mark.parametrize("place", [".git/tenuto/journal.db", ".git/tenuto", ".git"])
def test_a_folder_in_which_another_journal_could_be_put_is_open(
    gated: Path, say: Say, tmp_path: Path, place: str
) -> None:
    """Whoever may rename the journal, or the folder that it is in, need not be able to write it."""
    behind(gated, *NOBODY)
    assert say("init").status == 0
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)
    os.chown(gated / place, pwd.getpwnam("nobody").pw_uid, -1)
    said = say("run", "Add x", "--pipeline", "gated", "--agent", "scripted:answers.yaml", "--json")
    assert said.status == 4, (said.out, said.err)
    assert said.error["code"] == "not-isolated"
    assert say("list", "--json").data["runs"] == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_an_agent_of_another_user_works_and_cannot_write_the_journal(gated: Path, say: Say, tmp_path: Path) -> None:
    """A real second user: the work is done, the approval it tries on the way is not."""
    nobody = pwd.getpwnam("nobody")
    behind(gated, "setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "--")
    folder = gated / "docs/x"
    folder.mkdir(parents=True)
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)
    agent = "cat >/dev/null; id -un >docs/x/design.md; echo x >>.git/tenuto/journal.db; echo 'DONE: as told'"
    said = say("run", "Add x", "--pipeline", "gated", "--agent", f'command:sh -c "{agent}"', "--name", "x")
    assert said.status == 5, said.err
    assert (folder / "design.md").read_text() == "nobody\n"
    assert say("verify").status == 0
    assert loads(say("status", "--json").out)["data"]["gates"] == "isolated"


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")


def reachable(tmp_path: Path) -> None:
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)


@AS_ROOT
@pytest.mark.parametrize("place", [".", ".git", ".git/tenuto", ".git/tenuto/journal.db"])
def test_what_the_agents_user_owns_on_the_way_to_the_journal_is_found(
    gated: Path, say: Say, tmp_path: Path, place: str
) -> None:
    """Whoever owns a folder on the way puts another journal in its place; taking the right to write away from oneself
    hides nothing. Nothing is written of a run that could not begin."""
    reachable(tmp_path)
    assert say("init").status == 0
    behind(gated, *NOBODY)
    os.chown(gated / place, 65534, 65534)
    (gated / place).chmod(0o555)
    said = say("run", "Add x", "--pipeline", "gated", "--agent", "scripted:answers.yaml", "--json")
    assert said.status == 4, (said.out, said.err)
    assert said.error["code"] == "not-isolated", said.out
    assert say("list", "--json").data["runs"] == [] and not (gated / "docs").exists()


@AS_ROOT
def test_checks_and_set_up_run_where_agents_run(gated: Path, say: Say, tmp_path: Path) -> None:
    """`make test` is what the agent wrote."""
    reachable(tmp_path)
    checked = GATED.replace("out: built.md}", 'out: built.md}\n    checks: [{name: who, run: "id -u > docs/x/who"}]')
    (gated / ".tenuto/pipelines/gated.yaml").write_text(checked)
    behind(gated, *NOBODY)
    (gated / "docs/x").mkdir(parents=True)
    os.chown(gated / "docs/x", 65534, 65534)
    agent = "sh -c 'cat >/dev/null; for path in $TENUTO_OUTPUTS; do echo made > $path; done; echo DONE: made'"
    begun = say("run", "Add x", "--pipeline", "gated", "--agent", f"command:{agent}", "--name", "x")
    assert begun.status == 5, begun.err
    assert say("approve", "x").status == 0
    say("run")
    assert (gated / "docs/x/who").read_text() == "65534\n"


def test_the_root_of_the_repository_can_be_named_in_isolation(gated: Path, tmp_path: Path) -> None:
    """Settings are committed for a team, whose repositories lie elsewhere."""
    workspace = tenuto.open(str(gated))
    words = isolation({"isolation": ["bwrap", "--bind", "{root}", "{root}", "--ro-bind", "{git}", "{git}"]}, workspace)
    root = str(gated)
    assert words == ["bwrap", "--bind", root, root, "--ro-bind", f"{root}/.git", f"{root}/.git"]


def test_a_protection_that_was_taken_away_under_way_still_holds(gated: Path, say: Say, key: str) -> None:
    """Nobody can decide such an event; one that stands in the journal changes nothing, and is named."""
    begin(say)
    forge(
        gated,
        {"type": "SettingsChanged", "changes": {"gate_protection": None}},
        {**APPROVAL, "proof": {"level": "guarded"}},
    )
    assert go_on(say).error["code"] == "forged-decision"
    assert not (gated / "docs/x/built.md").exists()
    assert "how gates are protected was changed under way" in say("verify", "--json").error["message"]


def test_a_program_in_the_work_tree_judges_no_signature(
    gated: Path, say: Say, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PATH often has a folder of the project in it, where agents write."""
    begin(say)
    (gated / "bin").mkdir()
    (gated / "bin/ssh-keygen").write_text("#!/bin/sh\nexit 0\n")
    (gated / "bin/ssh-keygen").chmod(0o755)
    monkeypatch.setenv("PATH", f"{gated}/bin:{os.environ['PATH']}")
    forge(gated, APPROVAL)
    assert go_on(say).error["code"] == "forged-decision"
