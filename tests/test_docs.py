"""What the documents say is true, and says nothing about the machine it was written on.

Links lead somewhere. A fenced block marked `run` is run, top to bottom, with the other marked
blocks of the same page, in one new git repository:

    ```console run          each `$ ` line is a command (`> ` lines go on with it); the lines
                            below it are its output, when given; `...` stands for anything
    ```console run exit=5   the last command ends with 5; all others, and by default all, with 0
    ```python run           a program of its own
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

FENCE = re.compile(
    r"^ {0,3}(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)\n(?P<body>.*?)^ {0,3}(?P=ticks)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(
    r"\[[^\]\n]*\]\(\s*<?(?P<target>[^)\s>]+)>?[^)\n]*\)|^\[[^\]\n]+\]:\s+<?(?P<reference>[^\s>]+)", re.MULTILINE
)
HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)

# Paths that exist on somebody's machine only. People in examples are called `user` or `you`.
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:work|root|tmp|opt|(?:home|Users)/(?!user\b|you\b)\w+)/\w[^\s'\"`)]*")
# Where packages come from is the reader's choice, never ours.
REGISTRY = re.compile(
    r"pypi\.org|pythonhosted\.org|registry\.npmjs|--(?:extra-)?index-url|\bartifactory\b|\.pkg\.dev\b", re.IGNORECASE
)


class Block(NamedTuple):
    language: str
    exit: int
    body: str


def documents_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(text: str) -> set[str]:
    """The fragments that a page offers, spelled as forges spell them."""
    titles = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower().replace("`", "")).replace(" ", "-") for title in titles}


def broken_links(path: Path) -> Iterator[str]:
    text = path.read_text()
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    for found in LINK.finditer(prose):
        target = found["target"] or found["reference"]
        if re.match(r"[a-z][a-z+.-]*:", target):
            continue
        name, _, fragment = target.partition("#")
        goal = (path.parent / name).resolve() if name else path
        if not goal.exists():
            yield f"{path.name}: {target}: there is no such file"
        elif fragment and goal.suffix == ".md" and fragment not in anchors(goal.read_text()):
            yield f"{path.name}: {target}: there is no such heading"


def runnable(text: str) -> Iterator[Block]:
    for fence in FENCE.finditer(text):
        language, *marks = fence["info"].split() or [""]
        if "run" in marks:
            exits = [int(mark.removeprefix("exit=")) for mark in marks if mark.startswith("exit=")]
            yield Block(language, exits[0] if exits else 0, fence["body"])


def commands(body: str) -> Iterator[tuple[str, str]]:
    """(command, what it prints) of a console block; the second is empty when nothing is shown."""
    command, shown = "", ""
    for line in body.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], ""
        elif line.startswith("> ") and not shown:
            command += "\n" + line[2:]
        else:
            shown += line + "\n"
    if command:
        yield command, shown


def agrees(shown: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return not shown.strip() or re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def run(words: list[str], place: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, check=False, cwd=place, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def untruths(blocks: list[Block], place: Path) -> Iterator[str]:
    """Run a page's blocks and tell where what happens is not what is written."""
    for block in blocks:
        if block.language == "python":
            steps = [([sys.executable, "-c", block.body], block.body, "")]
        else:
            steps = [(["bash", "-c", command], command, shown) for command, shown in commands(block.body)]
        for number, (words, told, shown) in enumerate(steps, 1):
            done = run(words, place)
            expected = block.exit if number == len(steps) else 0
            if done.returncode != expected:
                yield f"$ {told}\nended with {done.returncode}, not {expected}:\n{done.stdout}"
            elif not agrees(shown, done.stdout):
                yield f"$ {told}\nshould print:\n{shown}\nprinted:\n{done.stdout}"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new git repository, with this checkout's `tenuto` on the PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    tenuto = programs / "tenuto"
    start = "import sys; from tenuto.entrypoints.launch import main; sys.exit(main())"
    tenuto.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{start}" "$@"\n')
    tenuto.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    home = tmp_path / "project"
    home.mkdir()
    run(["git", "init", "-q"], home)
    return home


def project_files() -> list[Path]:
    """Everything that is, or could be, committed."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT)
    if listed.returncode == 0:
        return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and not path.relative_to(ROOT).parts[0].startswith(".")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=documents_id)
def test_links_lead_somewhere(path: Path) -> None:
    found = list(broken_links(path))
    assert not found, "\n".join(found)


@pytest.mark.needs("git")
@pytest.mark.parametrize("path", DOCUMENTS, ids=documents_id)
def test_examples_do_what_they_show(path: Path, place: Path) -> None:
    found = list(untruths(list(runnable(path.read_text())), place))
    assert not found, "\n".join(found)


def test_no_file_tells_of_a_machine_or_a_registry() -> None:
    found = []
    for path in project_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for pattern in (MACHINE_PATH, REGISTRY):
            found += [f"{path.relative_to(ROOT)}: {hit.group()}" for hit in pattern.finditer(text)]
    assert not found, "\n".join(found)


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    """Files and headings are both looked up; links inside code and to other sites are left alone."""
    page = tmp_path / "page.md"
    page.write_text(
        "# A *good* day\n[a](page.md#a-good-day) [b](gone.md) [c](#bad-day) `[d](x)` [e](https://example.org)\n"
    )
    assert list(broken_links(page)) == [
        "page.md: gone.md: there is no such file",
        "page.md: #bad-day: there is no such heading",
    ]


@pytest.mark.parametrize(
    ("fence", "true"),
    [
        ("```console run\n$ echo one; echo two\none\n...\n$ false || printf 'a%s' b\nab\n```", True),
        ("```console run\n$ echo one\n> echo two\none\ntwo\n```", True),
        ("```console run exit=3\n$ true\n$ exit 3\n```", True),
        ("```console run\n$ echo one\ntwo\n```", False),
        ("```console run\n$ false\n$ true\n```", False),
        ("```console\n$ false\n```", True),
        ("```python run\nassert 1 + 1 == 2\n```", True),
        ("```python run\nassert 1 + 1 == 3\n```", False),
    ],
)
def test_an_untrue_example_is_found(fence: str, true: bool, tmp_path: Path) -> None:
    """What a marked block shows is compared with what really happens; an unmarked one is only read."""
    assert (not list(untruths(list(runnable(fence + "\n")), tmp_path))) == true


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("see " + "/work" + "/main/x", True),
        ('cwd = "' + "/home" + '/bob/project"', True),
        ("/home/user/project", False),
        ("docs/work/plan.md and .agents/tmp/state.json", False),
        ("`/usr/bin/env python3`", False),
    ],
)
def test_a_machine_path_is_told_from_a_path(text: str, told: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) == told
