"""`tenuto page`: a run as one file that runs nothing, loads nothing, and keeps declared secrets to itself."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tenuto
from tests.support.trusting import trust
from tests.unit.engine.conftest import Said

Say = Callable[..., Said]
SECRET = "Zq7-horse-Battery-93"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
PIPELINE = """\
name: small
documents: docs/{slug}
steps:
  - id: write
    agent: {role: designer, out: design.md, checks: [tests]}
  - id: agree
    gate: {prompt: Release it?, show: [design.md]}
"""
AGENT = f"""
import os, sys
os.makedirs("docs/r", exist_ok=True)
with open("docs/r/design.md", "w") as file:
    file.write("# Design {HOSTILE}\\n\\nThe key is " + os.environ.get("NOTHING", "kept") + ".\\n")
print("said {HOSTILE}")
print("DONE: {HOSTILE}")
"""


@pytest.fixture
def place(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MY_KEY", SECRET)
    (repository / ".tenuto/pipelines").mkdir(parents=True, exist_ok=True)
    (repository / ".tenuto/pipelines/small.yaml").write_text(PIPELINE)
    (repository / ".tenuto/config.yaml").write_text("checks: {tests: 'true'}\nsecrets: [MY_KEY]\n")
    trust(repository)
    (repository / "agent.py").write_text(AGENT)
    return repository


def written(place: Path, say: Say, *words: str) -> str:
    agent = f"command:{sys.executable} {place / 'agent.py'}"
    said = say("run", HOSTILE, "--pipeline", "small", "--name", "r", "--agent", agent)
    assert said.status == 5, said.err
    assert say("page", "r", "-o", "run.html", *words).status == 0
    return Path("run.html").read_text()


def test_it_is_one_file_without_a_script_and_only_its_own_style_may_work(place: Path, say: Say) -> None:
    text = written(place, say, "--with", "logs,diffs")
    assert "<script" not in text and "javascript:" not in text and not re.search(r"<[^>]*\son\w+=", text)
    policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1])  # type: ignore[index]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'"
    outside = text.replace(style, "")
    assert not re.search(r"<(img|link|iframe|object|embed|form)\b", outside), "it loads nothing"
    assert not re.search(r'\s(href|src|action)="[^"]', outside), "it leads nowhere"
    assert not re.search(r"\sstyle=", outside)
    assert html.escape("<script>alert(1)</script>") in text, "what is hostile is words"


def test_its_foot_names_what_the_journal_says(place: Path, say: Say) -> None:
    text = written(place, say)
    with tenuto.open(str(place)).journal.read() as reader:
        head = next(iter(reader.records("r")))
    assert f"{head['events']} events" in text and head["head"] in text
    assert "Release it?" in text and "Refuted claims" in text
    told = say("page", "r", "--json", "-o", "again.html").data
    assert (told["events"], told["head"]) == (head["events"], head["head"])


def test_a_decision_is_shown_with_what_it_rests_on(place: Path, say: Say) -> None:
    written(place, say)
    assert say("approve", "r").status == 0
    assert say("page", "r", "-o", "run.html").status == 0
    text = Path("run.html").read_text()
    digest = hashlib.sha256((place / "docs/r/design.md").read_bytes()).hexdigest()
    assert "agree: approve" in text and digest[:12] in text and "gates guarded" in text


def test_a_secret_is_masked_wherever_it_stands(place: Path, say: Say) -> None:
    written(place, say)
    kept = Path(tenuto.open(str(place)).state) / "attempts/r/write-1-designer-1/1/stdout"
    kept.write_text(f"the key is {SECRET}\nDONE: ok\n")
    assert say("page", "r", "-o", "run.html", "--with", "logs").status == 0
    text = Path("run.html").read_text()
    assert SECRET not in text and "the key is [secret]" in text


def test_without_a_file_it_goes_to_standard_output_and_bad_words_are_named(place: Path, say: Say) -> None:
    text = written(place, say)
    printed = say("page", "r").out
    assert printed.startswith("<!doctype html>") and printed.endswith("</html>")
    assert printed.partition("<footer>")[2] == text.partition("<footer>")[2] != ""
    bad = say("page", "r", "--with", "pictures")
    assert bad.status == 2 and "logs,diffs" in bad.err
    assert say("page", "nobody").status == 3
    os.mkdir("folder")
    assert "cannot be written" in say("page", "r", "-o", "folder").err
