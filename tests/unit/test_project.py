"""Which build and which tests are offered to a project that has not said what its checks are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.knowledge.project import commands, proposed


def made(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "offered"),
    [
        ({"Makefile": "CC := gcc\nall: x\n\nbuild: x\n\ttrue\ntest:\n\ttrue\n"}, ("make build", "make test")),
        ({"Makefile": "test := 1\nx.o: y\n"}, ("", "")),
        (
            {"justfile": "set shell := ['sh']\nbuild target='x':\n  true\ncheck:\n  true\n"},
            ("just build", "just check"),
        ),
        ({"Taskfile.yml": "version: 3\ntasks:\n  test:\n    cmds: [x]\n"}, ("", "task test")),
        ({"package.json": '{"scripts": {"build": "x", "test": "y"}}'}, ("npm run build", "npm run test")),
        ({"package.json": '{"scripts": {"test": "y"}}', "pnpm-lock.yaml": ""}, ("", "pnpm run test")),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, ("", "")),
        ({"package.json": "{broken"}, ("", "")),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ("", "python -m pytest")),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n", "uv.lock": ""}, ("", "uv run pytest")),
        ({"tox.ini": "", "noxfile.py": "", "pytest.ini": ""}, ("", "tox")),
        ({"noxfile.py": ""}, ("", "nox")),
        ({"Cargo.toml": "[package]\n"}, ("cargo build", "cargo test")),
        ({"go.mod": "module x\n"}, ("go build ./...", "go test ./...")),
        ({"pom.xml": "<x/>", "mvnw": ""}, ("./mvnw -q compile", "./mvnw -q verify")),
        ({"app.csproj": "<x/>"}, ("dotnet build", "dotnet test")),
        ({"Cargo.toml": "[package]\n", "Makefile": "test:\n\ttrue\n"}, ("cargo build", "make test")),
        ({"README.md": "no tools at all"}, ("", "")),
    ],
)
def test_what_is_offered_is_what_its_people_type(
    tmp_path: Path, files: dict[str, str], offered: tuple[str, str]
) -> None:
    found = proposed(made(tmp_path, files))
    assert (found.get("build", ""), found.get("tests", "")) == offered


def test_it_is_said_which_file_says_so_and_what_else_there_is(tmp_path: Path) -> None:
    made(tmp_path, {"Makefile": "test:\n\ttrue\n", "go.mod": "module x\n"})
    assert [tuple(one) for one in commands(tmp_path)] == [
        ("tests", "make test", "Makefile"),
        ("build", "go build ./...", "go.mod"),
        ("tests", "go test ./...", "go.mod"),
    ]
