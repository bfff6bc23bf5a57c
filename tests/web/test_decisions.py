"""What a person decides in a browser, and what keeps everybody else from it."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest

from tenuto.core.status import RESTING
from tests.support.trusting import trust
from tests.web.grounds import FORM, ROOT, RUN, Served, copied, make, program, run_of

CARD = f"/runs/{RUN}/answer"


def ready(server: Served, **more: str) -> dict[str, str]:
    return {**server.fields(), **more}


# ---- a decision


def test_an_approval_is_recorded_with_its_door_and_the_journal_is_sound(served: Served) -> None:
    answer = served.ask(CARD, ready(served, answer="approve", feedback="good\r\nas it is"))
    assert answer.status == 303 and answer.header("location") == f"/runs/{RUN}", answer.text
    run = run_of(served.root)
    decision = run["decisions"][-1]
    assert decision["approved"] and decision["feedback"] == "good\nas it is", "a browser sends CR and LF"
    assert decision["proof"] == {"level": "guarded", "over": "web"}
    assert program(served.root, "verify").returncode == 0


def test_comments_on_lines_become_feedback(served: Served) -> None:
    form = [*ready(served, answer="revise", feedback="Too short.").items()]
    for line, comment in (("docs/dark-mode/design.md:1-2", "which one?"), ("a:3", "  "), ("b:4", "no\r\nwhy")):
        form += [("line", line), ("comment", comment)]
    assert served.ask(CARD, form).status == 303
    said = run_of(served.root)["decisions"][-1]["feedback"]
    assert said == "Too short.\n\ndocs/dark-mode/design.md:1-2: which one?\nb:4: no\nwhy"


def test_a_form_is_answered_and_what_does_not_fit_is_said_with_the_words_kept(tmp_path: Path) -> None:
    with Served(make(tmp_path / "repo", FORM)) as server:
        server.enter()
        wrong = server.ask(CARD, ready(server, answer="approve", feedback="my words", **{"field.copies": "many"}))
        assert wrong.status == 400 and "my words" in wrong.text and "copies" in wrong.text
        assert run_of(server.root)["status"] == "waiting_gate"
        given = {"field.env": "prod", "field.copies": "3", "field.why": ""}
        assert server.ask(CARD, ready(server, answer="approve", **given)).status == 303
        assert run_of(server.root)["decisions"][-1]["answers"] == {"env": "prod", "copies": 3}


def test_approve_and_go_on_carries_the_run_on_and_it_outlives_the_server(served: Served) -> None:
    assert served.ask(CARD, ready(served, answer="approve+go_on")).status == 303
    served.end()
    followed = program(served.root, "watch", RUN)
    assert followed.returncode == 0, followed
    run = run_of(served.root)
    assert run["status"] == "completed" and run["status"] not in RESTING


def test_a_run_that_cannot_go_on_says_why_and_the_decision_stands(served: Served) -> None:
    (served.root / ".tenuto/config.yaml").write_text("{}\n")
    answer = served.ask(CARD, ready(served, answer="approve+go_on", feedback="yes"))
    assert "it is recorded, but the run does not go on" in answer.text and "nobody is there" in answer.text
    assert run_of(served.root)["decisions"][-1]["approved"]


@pytest.mark.parametrize("word", ["", "yes", "approve_all", "Approve", "revise+", "answer", "raise"])
def test_what_is_no_answer_decides_nothing(served: Served, word: str) -> None:
    answer = served.ask(CARD, ready(served, answer=word, unit="attempts", limit="x"))
    assert answer.status in (303, 400) and not [d for d in run_of(served.root)["decisions"] if d["approved"]]
    assert answer.status == 400 or word == "revise+"


# ---- too late, or for something else


def test_a_late_decision_is_refused_and_the_words_are_kept(served: Served) -> None:
    form = ready(served, answer="reject", feedback="three\nlong <b>lines</b>\nof mine")
    assert program(served.root, "approve", RUN).returncode == 0
    late = served.ask(CARD, form)
    assert late.status == 409 and "decided already" in late.text
    assert "three\nlong <b>lines</b>\nof mine" in unescape(late.text) and "<b>lines" not in late.text
    assert [decision["decision"] for decision in run_of(served.root)["decisions"]] == ["approve"]


def test_a_decision_is_for_the_gate_and_the_bytes_that_were_shown(served: Served) -> None:
    form = ready(served, answer="approve")
    for other in (
        {**form, "gate": "gate-2"},
        {**form, "gate": ""},
        {**form, "shown": "0" * 64 + form["shown"][64:]},
        {name: value for name, value in form.items() if name != "shown"},
    ):
        assert served.ask(CARD, other).status in (400, 409)
    (served.root / "docs/dark-mode/design.md").write_text("another design\n")
    changed = served.ask(CARD, form)
    assert changed.status == 409 and "has changed since" in changed.text
    assert run_of(served.root)["status"] == "waiting_gate"


def test_two_tabs_decide_at_once_and_one_event_is_written(served: Served) -> None:
    forms = [ready(served, answer=word) for word in ("approve", "reject", "approve", "revise")]
    found: list[int] = []
    threads = [threading.Thread(target=lambda form=form: found.append(served.ask(CARD, form).status)) for form in forms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [303, 409, 409, 409]
    assert len(run_of(served.root)["decisions"]) == 1


# ---- who is a person


def test_a_stolen_cookie_decides_nothing_inside_an_agent(root: Path) -> None:
    """The real judge: the process behind the connection, and those above it."""
    with Served(root, judge="real") as server:
        server.enter()
        ask = (
            "import sys, json; sys.path.insert(0, sys.argv[1])\n"
            "from tests.web.grounds import Served\n"
            "server = Served.__new__(Served); server.port = int(sys.argv[2]); server.session = sys.argv[3]\n"
            "server.address = f'http://127.0.0.1:{server.port}'\n"
            "answer = server.ask(sys.argv[4], json.loads(sys.argv[5])); print(answer.status, answer.text)\n"
        )
        form = tenuto_json(ready(server, answer="approve"))
        words = [sys.executable, "-c", ask, str(ROOT), str(server.port), server.session, CARD, form]
        inside = subprocess.run(
            words, env={**os.environ, "CLAUDECODE": "1"}, capture_output=True, text=True, check=True
        )
        assert inside.stdout.startswith("403 ") and "Claude Code" in inside.stdout, inside.stdout
        below = ["env", "-u", "CLAUDECODE", *words]
        outer = ["/bin/sh", "-c", '"$@"; true', "sh", *below]
        scrubbed = subprocess.run(
            outer, env={**os.environ, "CLAUDECODE": "1"}, capture_output=True, text=True, check=True
        )
        assert scrubbed.stdout.startswith("403 "), "what stands above the program counts as well"
        assert run_of(root)["status"] == "waiting_gate"
        outside = subprocess.run(words, capture_output=True, text=True, check=True)
        assert outside.stdout.startswith("303 "), outside.stdout
        assert run_of(root)["decisions"][-1]["approved"]


def tenuto_json(form: dict[str, str]) -> str:
    from tenuto.encoding import dumps

    return dumps(form)


def test_a_server_that_an_agent_started_only_shows(root: Path) -> None:
    with Served(root, judge="real", CLAUDECODE="1") as server:
        assert "started by an agent" in server.said
        server.session = ""
        code = server.code()
        text = server.ask("/in", {"code": code})
        server.session = text.header("set-cookie").partition(";")[0]
        page = server.ask(f"/runs/{RUN}")
        assert page.status == 200 and 'name="answer"' not in page.text
        refused = server.ask(CARD, {"token": "x", "answer": "approve", "gate": "gate-1"})
        assert refused.status == 403 and "nothing is decided here" in refused.text


def test_a_look_only_server_without_a_terminal_shows_to_its_own_user(root: Path) -> None:
    around = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = subprocess.Popen(
        [sys.executable, "-m", "tenuto", "ui", "--look-only", "--port", "0"],
        cwd=root,
        env=around,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    with started:
        assert started.stderr is not None
        said = "".join(started.stderr.readline() for _ in range(2))
        address = re.search(r"http://127\.0\.0\.1:(\d+)$", said, re.MULTILINE)
        assert address is not None and "#" not in said, said
        server = Served.__new__(Served)
        server.port, server.session, server.address = int(address[1]), "", address[0]
        assert server.ask("/").status == 200
        assert server.ask(CARD, {"answer": "approve"}).status in (401, 403)
        started.terminate()
    assert run_of(root)["status"] == "waiting_gate"


def test_a_browser_that_cannot_be_seen_repeats_four_digits_for_one_decision(root: Path) -> None:
    with Served(root, judge="unseen") as server:
        server.enter()
        form = ready(server, answer="reject", feedback="no")
        asked = server.ask(CARD, form)
        assert asked.status == 403 and "Four digits" in asked.text
        digits = server.hear(r"type (\d{4}) in the browser")[1]
        assert digits not in asked.text
        other = server.ask(CARD, {**form, "answer": "approve", "digits": digits})
        assert other.status == 403, "they are for that decision only"
        wrong = server.ask(CARD, {**form, "digits": f"{(int(digits) + 1) % 10000:04d}"})
        assert wrong.status == 403 and "not the digits" in wrong.text
        assert run_of(root)["status"] == "waiting_gate"
        assert server.ask(CARD, {**form, "digits": digits}).status == 303
        assert run_of(root)["decisions"][-1]["proof"]["seen"] == "digits"


def test_digits_that_are_guessed_at_are_taken_away(root: Path) -> None:
    with Served(root, judge="unseen") as server:
        server.enter()
        form = ready(server, answer="approve")
        server.ask(CARD, form)
        digits = server.hear(r"type (\d{4}) in the browser")[1]
        for number in range(1, 4):
            server.ask(CARD, {**form, "digits": f"{(int(digits) + number) % 10000:04d}"})
        assert server.ask(CARD, {**form, "digits": digits}).status == 403
        assert run_of(root)["status"] == "waiting_gate"


# ---- signed


@pytest.mark.needs("ssh-keygen")
def test_where_decisions_are_signed_no_button_decides_and_a_pasted_signature_does(tmp_path: Path) -> None:
    key = tmp_path / "ada"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", str(key)], check=True)
    (tmp_path / "repo/.tenuto").mkdir(parents=True)
    (tmp_path / "repo/.tenuto/signers").write_text("ada " + key.with_suffix(".pub").read_text())
    root = make(tmp_path / "repo", config="gates: signed\n")
    with Served(root) as server:
        server.enter()
        form = ready(server, answer="approve", feedback="one\r\ntwo")
        pressed = server.ask(CARD, form)
        assert pressed.status == 200 and "ssh-keygen -Y sign" in pressed.text and "tenuto-gate" in pressed.text
        assert run_of(root)["status"] == "waiting_gate"
        saved = server.ask(f"/runs/{RUN}/statement", form)
        assert saved.header("content-disposition").startswith("attachment")
        (tmp_path / "decision").write_text(saved.text)
        sign = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", "tenuto-gate", str(tmp_path / "decision")]
        subprocess.run(sign, check=True)
        pasted = (tmp_path / "decision.sig").read_text().replace("\n", "\r\n")
        signed = {**form, "signature": pasted, "signer": " ada "}
        other = server.ask(CARD, {**signed, "feedback": "other words"})
        assert other.status == 403 and "bad-signature" in other.text and "other words" in other.text
        assert server.ask(CARD, {**signed, "answer": "reject"}).status == 403
        assert server.ask(CARD, {**signed, "signer": "eve"}).status == 403
        assert run_of(root)["status"] == "waiting_gate"
        assert server.ask(CARD, signed).status == 303
        proof = run_of(root)["decisions"][-1]["proof"]
        assert proof["signer"] == "ada" and proof["over"] == "web"
        assert program(root, "verify").returncode == 0


# ---- other answers


def test_a_pause_a_resume_a_fork_and_an_end(served: Served) -> None:
    token = served.fields()["token"]
    assert served.ask(CARD, ready(served, answer="approve")).status == 303
    assert served.ask(CARD, {"token": token, "answer": "pause", "feedback": "lunch"}).status == 303
    assert run_of(served.root)["status"] == "paused"
    assert served.ask(CARD, {"token": token, "answer": "resume"}).status == 303
    assert run_of(served.root)["status"] == "running"
    early = served.ask(CARD, {"token": token, "answer": "retry", "step": "draft"})
    assert early.status == 403 and "What now" in early.text, "what may be tried again, core decides"
    assert served.ask(f"/runs/{RUN}/fork", {"token": token, "step": "draft", "name": "again"}).status == 303
    assert served.ask("/runs/again").status == 200
    assert served.ask(CARD, {"token": token, "answer": "cancel", "feedback": "enough"}).status == 303
    assert run_of(served.root)["status"] == "cancelled"
    assert served.ask(f"/runs/{RUN}/seen", {"token": token}).status == 303


def test_leaving_ends_the_session(served: Served) -> None:
    token = served.fields()["token"]
    assert served.ask("/out", {"token": "x"}).status == 403
    assert served.ask("/out", {"token": token}).status == 303
    assert served.ask("/").status == 303


# ---- what there is


def state(root: Path) -> dict[str, str]:
    """Every table by its rows, and every file of the repository that is not the journal's own."""
    found: dict[str, str] = {}
    (database,) = root.rglob("journal.db")
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as journal:
        for (table,) in journal.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name").fetchall():
            rows = journal.execute(f'SELECT * FROM "{table}"').fetchall()
            found[table] = hashlib.sha256(repr(rows).encode()).hexdigest()
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.name.startswith("journal."):
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


# ---- secrets


def test_a_secret_stands_in_no_page_stream_or_refusal(made: Path, tmp_path: Path) -> None:
    secret = "K3y&<\"x'>-9f8e7d"
    root = copied(made, tmp_path / "repo")
    (root / ".tenuto/config.yaml").write_text("agent: scripted:answers.yaml\nsecrets: [MY_KEY]\n")
    with Served(root, MY_KEY=secret) as server:
        server.enter()
        form = ready(server, answer="approve", gate="gate-9", feedback=f"see {secret} there")
        late = server.ask(CARD, form)
        assert late.status == 409 and "[secret]" in late.text
        for spelled in (secret, "9f8e7d"):
            assert spelled not in late.text and spelled not in unescape(late.text)


def test_a_secret_is_masked_in_pages_downloads_and_the_stream(made: Path, tmp_path: Path) -> None:
    secret = "k3y-9f8e7d-k3y-9f8e7d"  # which may be the name of a run
    root = copied(made, tmp_path / "repo")
    (root / ".tenuto/config.yaml").write_text("agent: scripted:answers.yaml\nsecrets: [MY_KEY]\n")
    trust(root)
    (kept,) = root.rglob("draft-1-designer-1/1/stdout")
    kept.write_text(f"line\nthe key is {secret}\n" * 40_000)
    attempt = f"/runs/{RUN}/attempts/draft-1-designer-1"
    with Served(root, MY_KEY=secret) as server:
        server.enter()
        with socket.create_connection(("127.0.0.1", server.port)) as stream:
            ask = f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {server.session}\r\n\r\n"
            stream.sendall(ask.encode())
            told = stream.recv(1 << 16)
            assert program(root, "run", secret, "--pipeline", "gated", "--start-only").returncode == 0
            while b'"version"' not in told:
                told += stream.recv(1 << 16)
            assert secret.encode() not in told and b"[secret]" in told
        for path in ("/", "/runs", f"{attempt}?of=output", f"{attempt}?of=output&find=key", f"{attempt}/log?of=output"):
            text = unescape(server.ask(path).text)
            assert secret not in text and ("[secret]" in text or "output" not in path), path


def test_a_secret_that_is_declared_while_the_server_runs_is_masked_from_then_on(root: Path) -> None:
    with Served(root, MY_KEY="K3y-9f8e7d-K3y-9f8e7d") as server:
        server.enter()
        form = ready(server, answer="approve", gate="gate-9", feedback="see K3y-9f8e7d-K3y-9f8e7d there")
        assert "K3y-9f8e7d" in server.ask(CARD, form).text
        (root / ".tenuto/config.yaml").write_text("agent: scripted:answers.yaml\nsecrets: [MY_KEY]\n")
        late = server.ask(CARD, form)
        assert "[secret]" in late.text and "K3y-9f8e7d" not in late.text
