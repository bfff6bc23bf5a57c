"""The form that our planners are asked for: read strictly, and sent back line by line where it is not in order."""

from __future__ import annotations

import re

import pytest

from tenuto.core.items import PlanRefused, arrange
from tenuto.knowledge import roles
from tenuto.knowledge.plans import explain_plan, read_plan

FIRST = "- id: 01-parser\n  wave: 1\n  files: [src/parser.py]\n"


def plan(*entries: str, before: str = "# Plan\n\n") -> str:
    return f"{before}```tenuto-plan\n{''.join(entries)}```\n"


def problems(text: str, files: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(PlanRefused) as refused:
        read_plan(text, files)
    assert refused.value.code == "bad-plan"
    return refused.value.message.split("\n")[1:]


def test_every_field_of_an_item_is_read() -> None:
    more = (
        "- id: 02-docs\n  wave: 2\n  title: 'Docs: all of them'\n  depends_on: [01-parser]\n"
        "  agent: documentation-writer\n"
        "  effort: Low\n  lines: 80\n  description: What it does\n  files: [docs/parser.md, README.md]\n"
    )
    items = read_plan(plan(FIRST, more))["items"]
    assert {key: value for key, value in items[1].items() if key != "digest"} == {
        "id": "02-docs",
        "title": "Docs: all of them",
        "files": ["docs/parser.md", "README.md"],
        "depends_on": ["01-parser"],
        "agent": "documentation-writer",
        "wave": 2,
        "description": "What it does",
        "effort": "Low",
        "lines": 80,
    }
    assert arrange(items)["waves"] == [["01-parser"], ["02-docs"]]


def test_beside_the_block_nothing_is_read() -> None:
    """Neither lists, nor tables, nor what task files say about order: there is one place."""
    text = plan(FIRST, before="### Wave 1\n- 07-x (depends_on: 08)\n\n| # | Task | Wave |\n|-|-|-|\n| 9 | y | 1 |\n\n")
    files = {"tasks/01-parser.md": "# Parser\n**depends_on:** 07-x\n"}
    found = read_plan(text, files)
    assert [(item["id"], item["depends_on"], item.get("source")) for item in found["items"]] == [
        ("01-parser", [], "01-parser.md")
    ]
    assert found["warnings"] == []


@pytest.mark.parametrize(
    ("entry", "line", "said"),
    [
        ("- id: 02-b\n", 7, "this task has no wave; add 'wave: 1'"),
        ("- wave: 2\n", 7, "this task has no id; add 'id: 01-parser'"),
        (
            "- id: 02-b\n  wave: two\n",
            8,
            "wave must be a whole number from 1 on, and is 'two'; write for example 'wave: 1'",
        ),
        ("- id: 02-b\n  wave: 0\n", 8, "wave must be a whole number from 1 on, and is 0"),
        ("- id: 02 b\n  wave: 2\n", 7, "id must be a word or a number, and is '02 b'"),
        ("- id: 01-parser\n  wave: 2\n", 7, "the id '01-parser' is there twice"),
        (
            "- id: 02-b\n  wave: 2\n  dependson: [01-parser]\n",
            9,
            "no field is called 'dependson'; did you mean 'depends_on'?",
        ),
        ("- id: 02-b\n  wave: 2\n  depends_on: 01-parser\n", 9, "depends_on must be a list of ids, and is '01-parser'"),
        (
            "- id: 02-b\n  wave: 2\n  depends_on: [01-parsr]\n",
            9,
            "no task is called '01-parsr'; did you mean '01-parser'?",
        ),
        (
            "- id: 02-b\n  wave: 1\n  depends_on: [01-parser]\n",
            9,
            "02-b (wave 1) depends on 01-parser (wave 1); a task depends on tasks of earlier waves only",
        ),
        ("- id: 02-b\n  wave: 2\n  files: src/b.py\n", 9, "files must be a list of paths, and is 'src/b.py'"),
        ("- id: 02-b\n  wave: 2\n  lines: many\n", 9, "lines must be a whole number, and is 'many'"),
        ("- 02-b\n", 7, "a task is a mapping with id and wave; begin it with '- id: 01-slug'"),
        ("- id: 02-b\n  wave: 2\n  id: 03-c\n", 9, "the key 'id' is there twice"),
        ("- id: [02-b\n  wave: 2\n", 8, ""),
    ],
)
def test_each_problem_has_its_line_and_what_is_wanted(entry: str, line: int, said: str) -> None:
    assert problems(plan(FIRST, entry))[0].startswith(f"plan.md:{line}: {said}")


def test_all_problems_are_named_at_once() -> None:
    found = problems(plan(FIRST, "- id: 02-b\n  wave: x\n", "- wave: 2\n  size: 3\n"))
    assert [one.split(" ")[0] for one in found] == ["plan.md:8:", "plan.md:9:", "plan.md:10:"]


@pytest.mark.parametrize("body", ["", "tasks: []\n", "none\n"])
def test_a_block_without_a_list_of_tasks_is_refused(body: str) -> None:
    assert problems(plan(body)) == ["plan.md:4: the block is no list of tasks; begin each with '- id: 01-slug'"]


def test_two_blocks_are_one_too_many() -> None:
    assert problems(plan(FIRST) + plan(FIRST, before="")) == [
        "plan.md:8: there is a second tenuto-plan block; write all tasks into one"
    ]


def test_every_task_has_its_file_where_there_are_task_files() -> None:
    text = plan(FIRST, "- id: 02-b\n  wave: 2\n")
    assert problems(text, {"tasks/01-parser.md": "# x"}) == [
        "plan.md:7: there is no task file 02-b.md; write it, or correct the id"
    ]


def test_a_task_file_that_the_block_does_not_list_is_named_and_not_run() -> None:
    """So a replan drops a task: by leaving it out."""
    found = read_plan(plan(FIRST), {"tasks/01-parser.md": "# x", "tasks/02-old.md": "# y"})
    assert [item["id"] for item in found["items"]] == ["01-parser"]
    assert [one["message"] for one in found["warnings"]] == ["tasks/02-old.md is not listed in the plan; it is not run"]


def test_a_change_of_the_task_file_changes_the_digest_and_a_change_of_the_wave_does_not() -> None:
    def digest(text: str, body: str) -> str:
        return read_plan(text, {"tasks/01-parser.md": body})["items"][0].get("digest", "")

    base = digest(plan(FIRST), "# Parser\n")
    assert base == digest(plan(FIRST.replace("wave: 1", "wave: 4")), "# Parser\n")
    assert base != digest(plan(FIRST), "# Parser\nMore.\n")


def test_the_block_is_explained_line_by_line() -> None:
    lines = {line["line"]: (line["read"], line["ignored"]) for line in explain_plan(plan(FIRST))["lines"]}
    assert lines == {
        1: ([], "text"),
        3: ([], "code"),
        4: (["item 01-parser"], ""),
        5: (["wave of 01-parser"], ""),
        6: (["files of 01-parser"], ""),
        7: ([], "code"),
    }


@pytest.mark.parametrize(("role", "mode"), [("planner", "plan"), ("code-architect", ""), ("planning_agent", "")])
def test_the_example_in_a_role_is_in_order(role: str, mode: str) -> None:
    """What a planner copies is what is read."""
    text = roles.instructions(roles.find(role), mode)
    example = re.search(r"^~~~markdown\n(.*?)^~~~$", text, re.DOTALL | re.MULTILINE)
    assert example
    items = read_plan(re.sub(r"<(\w+)[^>]*>", r"\1", example.group(1)))["items"]
    assert items and [item["wave"] for item in items] == list(range(1, len(items) + 1))
