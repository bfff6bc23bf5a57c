"""`tenuto pipeline`: begin one, list them, check, show, and run its cases without agents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Say = Callable[..., Any]
OWN = Path(".tenuto") / "pipelines"
SMALL = """\
name: small
documents: docs/{slug}
steps:
  - id: write
    agent: {role: changer, out: a.md}
    on: {ERROR: {pause: it cannot be written}}
  - id: test
    command: {run: [no-such-program, --fast], exits: {3: NEEDS_REVISION}, stdout: tests.txt}
    on: {NEEDS_REVISION: {route: [write], at_most: 1, then: {pause: it still fails}}}
"""
CASES = """\
request: Try it
cases:
  - name: well
    answers: [{for: {step: test, visit: 1}, exit: 3, reply: "one failed"}]
    expect:
      end: completed
      steps: [write, test, write, test]
      ways: [test.NEEDS_REVISION]
      files: {docs/try-it/tests.txt: did its part}
"""


@pytest.fixture
def small(repository: Path) -> Path:
    folder = repository / OWN
    folder.mkdir(parents=True)
    (folder / "small.yaml").write_text(SMALL)
    (folder / "small.test.yaml").write_text(CASES)
    return folder


# ---- new


def test_a_new_one_is_checked_and_its_cases_go_every_way(say: Say, repository: Path) -> None:
    made = say("pipeline", "new", "release", "--json").data
    assert made["files"] == [f"{OWN}/release.yaml", f"{OWN}/release.test.yaml"]
    text = (repository / OWN / "release.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=../pipeline.schema.json\n") and "\nname: release\n" in text
    assert (repository / ".tenuto" / "pipeline.schema.json").is_file()
    assert say("pipeline", "check").status == 0


def test_nothing_that_is_there_is_replaced(say: Say, small: Path) -> None:
    answer = say("pipeline", "new", "small", "--json")
    assert (answer.status, answer.error["code"]) == (4, "exists")
    assert (small / "small.yaml").read_text() == SMALL


def test_from_the_cookbook_with_its_cases_and_roles(say: Say, repository: Path) -> None:
    made = say("pipeline", "new", "our-notes", "--from", "release-notes", "--json").data
    assert f"{OWN}/our-notes.test.yaml" in made["files"] and ".tenuto/roles/writer.md" in made["files"]
    assert say("pipeline", "check", "our-notes").out == f"ok       {OWN}/our-notes.yaml\n"
    assert say("pipeline", "test", "our-notes", "--every-way").status == 0


def test_from_a_shipped_one_its_comments_come_along(say: Say, repository: Path) -> None:
    say("pipeline", "new", "ours", "--from", "quick")
    text = (repository / OWN / "ours.yaml").read_text()
    assert "# The right size for most changes" in text and "\nname: ours\n" in text
    assert say("pipeline", "check", "ours").status == 0


@pytest.mark.parametrize("name", ["../x", "a b", "", ".hidden", "x.yaml", "x.test"])
def test_a_name_that_is_none_makes_nothing(say: Say, repository: Path, name: str) -> None:
    assert say("pipeline", "new", name).status == 2
    assert not (repository / ".tenuto").exists()


def test_from_one_that_there_is_not(say: Say, repository: Path) -> None:
    answer = say("pipeline", "new", "x", "--from", "bug-fxi")
    assert answer.status == 3 and "bug-fix" in answer.err


# ---- list, check


def test_the_list_names_own_shipped_and_cookbook_and_no_cases(say: Say, small: Path) -> None:
    found = {one["name"]: one["origin"] for one in say("pipeline", "list", "--json").data["pipelines"]}
    assert (found["small"], found["quick"], found["spike"]) == ("repository", "shipped", "cookbook")
    assert not any("test" in name and name != "test-coverage" for name in found)


def test_problems_are_named_with_their_place_and_the_nearest_word(say: Say, small: Path) -> None:
    (small / "small.yaml").write_text(SMALL.replace("[write]", "[wrote]"))
    answer = say("pipeline", "check", "small")
    assert answer.status == 2
    assert f"{OWN}/small.yaml:9:35: [unknown-step] there is no step 'wrote' (did you mean 'write'?)" in answer.out
    (small / "small.yaml").write_text(SMALL.replace("changer", "chnger").replace("out: a.md", "out: /a.md"))
    data = say("pipeline", "check", "small", "--json").data
    assert [(one["line"], one["problem"]["code"]) for one in data["files"][0]["problems"]] == [
        (5, "unknown-role"),
        (5, "bad-path"),
    ]


def test_a_file_that_is_no_yaml_and_wrong_cases_are_named_too(say: Say, small: Path) -> None:
    (small / "broken.yaml").write_text("name: [")
    (small / "small.test.yaml").write_text(
        CASES.replace("end: completed", "end: complete").replace("exit: 3", "exit: x")
    )
    answer = say("pipeline", "check")
    assert answer.status == 2
    assert f"{OWN}/broken.yaml:1:8: " in answer.out
    assert f"{OWN}/small.test.yaml:4:15: [bad-answer] " in answer.out
    assert f"{OWN}/small.test.yaml:6:7: " in answer.out and "completed" in answer.out
    assert f"ok       {OWN}/small.yaml" in answer.out


def test_a_role_of_another_program_has_any_mode(say: Say, small: Path, repository: Path) -> None:
    (repository / ".claude" / "agents").mkdir(parents=True)
    (repository / ".claude" / "agents" / "poet.md").write_text("---\nname: poet\n---\nRhyme.\n")
    (small / "small.yaml").write_text(SMALL.replace("changer", "poet"))
    assert say("pipeline", "check", "small").status == 0


def test_none_at_all(say: Say, repository: Path) -> None:
    assert say("pipeline", "check").status == 3
    assert say("pipeline", "check", "no-such").status == 3
    assert say("pipeline", "chek").status == 2


# ---- show


def test_it_is_shown_as_text_mermaid_and_picture(say: Say, small: Path, repository: Path) -> None:
    text = say("pipeline", "show", "small").out
    assert "test   runs no-such-program --fast" in text and "back to write > test, at most 1 x" in text
    assert say("pipeline", "show", "small", "--as", "mermaid").out.startswith("flowchart TD\n")
    assert say("pipeline", "show", "small", "--as", "svg", "-o", "small.svg").out == "written: small.svg\n"
    assert (repository / "small.svg").read_text() == say("pipeline", "show", "small", "--as", "svg").out
    assert [node["kind"] for node in say("pipeline", "show", "small", "--json").data["nodes"]] == ["agent", "command"]


# ---- test


def test_cases_pass_and_the_ways_that_none_went_are_named(say: Say, small: Path) -> None:
    answer = say("pipeline", "test", "small")
    assert answer.status == 0, answer.out + answer.err
    assert "ok       well (completed, 4 attempts)" in answer.out
    assert "no case went: write.ERROR, test.NEEDS_REVISION.then" in answer.out
    assert say("pipeline", "test", "--every-way").status == 1


def test_a_case_that_fails_says_what_came_instead(say: Say, small: Path) -> None:
    (small / "small.test.yaml").write_text(
        CASES.replace("end: completed", "end: paused").replace("test.NEEDS_REVISION]", "write.ERROR, x]")
    )
    answer = say("pipeline", "test", "small")
    assert answer.status == 1
    assert "failed   well" in answer.out
    assert "it ends as completed, not as paused" in answer.out
    assert "it did not go the way write.ERROR" in answer.out and "the pipeline has no way x; it has: " in answer.out


def test_decisions_that_do_not_fit_are_named(say: Say, small: Path) -> None:
    (small / "small.test.yaml").write_text(
        "cases:\n  - {name: a, decisions: [approve], expect: {end: completed}}\n"
        "  - name: b\n    answers: [{for: {step: write}, reply: 'ERROR: no'}]\n"
        "    decisions: [approve]\n    expect: {end: paused}\n"
    )
    out = say("pipeline", "test", "small").out
    assert "decisions that nobody asked for: approve" in out
    assert "approve: the run waits at no gate, it is paused" in out


def test_one_case_only_and_a_file_without_cases(say: Say, small: Path) -> None:
    assert say("pipeline", "test", "small", "--case", "well").status == 0
    assert say("pipeline", "test", "small", "--case", "other").status == 3
    (small / "small.test.yaml").unlink()
    answer = say("pipeline", "test", "small", "--json")
    assert (answer.status, answer.error["code"]) == (3, "no-cases")
    assert say("pipeline", "test").status == 3


def test_nothing_is_left_in_the_repository(say: Say, small: Path, repository: Path) -> None:
    before = sorted(path for path in repository.rglob("*"))
    say("pipeline", "test", "small")
    assert sorted(path for path in repository.rglob("*")) == before
