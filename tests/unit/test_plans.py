"""Plans in every notation that planners use, and what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.items import PlanRefused, arrange
from tenuto.knowledge.plans import Plan, read_plan

if TYPE_CHECKING:
    from tenuto.core.records.run import PlannedItem


def items(text: str, files: dict[str, str] | None = None) -> list[PlannedItem]:
    return read_plan(text, files)["items"]


def shown(text: str, files: dict[str, str] | None = None) -> list[str]:
    """`id@wave<dependencies`."""
    return [
        item["id"]
        + (f"@{item['wave']}" if item["wave"] else "")
        + ("<" + "+".join(item["depends_on"]) if item["depends_on"] else "")
        for item in items(text, files)
    ]


def codes(plan: Plan) -> list[str]:
    return [warning["code"] for warning in plan["warnings"]]


# ---- lists -----------------------------------------------------------------------------------------


def test_bullets_with_depends_on() -> None:
    """The plainest plan."""
    text = (
        "### Wave 1\n\n- 01-task-a (depends_on: none)\n- 02-task-b (depends_on: none)\n\n### Wave 2\n\n- 03-c "
        "(depends_on: 01, 02)\n"
    )
    assert shown(text) == ["01-task-a@1", "02-task-b@1", "03-c@2<01-task-a+02-task-b"]


def test_bold_ids_with_an_em_dash() -> None:
    """The title stands behind it."""
    text = (
        "## Wave 1\n- **01** — Remove the cap (depends_on: none)\n## Wave 2\n- **02** — Add a limit (depends_on: 01)\n"
    )
    assert shown(text) == ["01@1", "02@2<01"]
    assert [item["title"] for item in items(text)] == ["Remove the cap", "Add a limit"]


@pytest.mark.parametrize(
    "line",
    [
        "- 02-b (depends_on: 01-a)",
        "* 02-b (Depends on: 01)",
        "1. 02-b (depends on 01)",
        "- [ ] 02-b (deps: 1)",
        "- **02-b** [depends_on: task-01]",
        "- `02-b` — text — depends_on: 01",
        "- 02-b (depends_on: 01 — it needs its types, and more)",
        "- 02-b (depends_on: 01 (the types))",
        "- 02-b (agent: implementer; depends_on: 01)",
        "- 02-b (depends_on: 01, agent: implementer)",
        "- 02-b (after 01)",
        "- 02-b: text; deps: 01",
        "- 02-b\n  - depends_on: 01",
        "- **02-b**: text\n  **Dependencies:** 01",
        "02-b: text (depends_on: 01)",
    ],
)
def test_a_list_entry_says_what_it_depends_on(line: str) -> None:
    """In brackets, behind a dash, below it; with a remark or without."""
    assert shown(f"### Wave 1\n- 01-a (depends_on: none)\n\n### Wave 2\n\n{line}\n") == ["01-a@1", "02-b@2<01-a"]


@pytest.mark.parametrize(
    "heading",
    [
        "### Wave 2",
        "## Wave 2: the rest",
        "#### Wave 2 (parallel — 4 tasks, independent)",
        "### Wave 2 — Templates & Schemas (4 tasks, parallel)",
        "## 5.2 Wave 2",
        "### Execution Wave 2",
        "### WAVE 2 - Prerequisites",
        "**Wave 2:**",
        "**Wave 2** (parallel)",
        "Wave 2:",
        "### Wave 2 (sequential — depends on Wave 1)",
    ],
)
def test_wave_headings_of_any_make(heading: str) -> None:
    """As a heading, in bold, or as a plain line."""
    assert shown(f"### Wave 1\n- 01-a (depends_on: none)\n\n{heading}\n\n- 02-b (depends_on: 01)\n") == [
        "01-a@1",
        "02-b@2<01-a",
    ]


def test_waves_are_counted_from_one() -> None:
    """From 0, by letters, or with letters behind the number: the order is what counts."""
    for labels in (("0", "1", "2"), ("A", "B", "C"), ("1a", "1b", "2")):
        text = "".join(f"### Wave {label}\n- 0{at}-x (depends_on: none)\n" for at, label in enumerate(labels, 1))
        assert [item["wave"] for item in items(text)] == [1, 2, 3]


def test_waves_in_one_line_each() -> None:
    """The items are described elsewhere, or nowhere."""
    text = "- **Wave 1 (parallel):** 01-a, 02-b\n- **Wave 2 — the rest:** 03-c\n"
    assert shown(text) == ["01-a@1", "02-b@1", "03-c@2"]
    table = "| # | Task | Depends on |\n|-|-|-|\n| 1 | x | - |\n| 2 | y | 1 |\n| 3 | z | 1 |\n\n"
    assert shown(table + "Wave 1: #1\nWave 2 (both at once): #2–#3\n") == ["1@1", "2@2<1", "3@2<1"]
    assert shown(table + "| Wave | Tasks |\n|-|-|\n| 1 | 1 |\n| 2 | 2, 3 |\n") == ["1@1", "2@2<1", "3@2<1"]


@pytest.mark.parametrize("line", ["Tasks: 01, 02", "**Tasks (2):** 01-a, 02-b", "- Tasks: 01–02", "01, 02", "#1, #2"])
def test_a_wave_lists_its_tasks_in_a_line(line: str) -> None:
    """Under its heading, with the label or without."""
    table = "| # | Task | Depends on |\n|-|-|-|\n| 01 | a | - |\n| 02 | b | - |\n| 03 | c | 01 |\n\n"
    assert shown(f"{table}### Wave 1\n\n{line}\n\n### Wave 2\n\nTasks: 03\n") == ["01@1", "02@1", "03@2<01"]


def test_how_many_tasks_a_wave_has_is_not_which() -> None:
    """`Wave 1: 2 tasks in parallel`."""
    table = "| # | Task | Wave |\n|-|-|-|\n| 1 | a | 1 |\n| 2 | b | 2 |\n| 3 | c | 3 |\n\n"
    plan = read_plan(table + "Wave 1: 3 tasks in parallel\n")
    assert [item["wave"] for item in plan["items"]] == [1, 2, 3]
    assert plan["warnings"] == []


def test_phases_are_waves_where_no_waves_are_written() -> None:
    """Whoever writes phases wants one after the other; that they were read so is said."""
    text = (
        "## Phase 1: Setup\n- [ ] T001 Make it in src/app/main.py\n## Phase 2: Core\n- [ ] T002 Use it (depends on "
        "T001)\n"
    )
    plan = read_plan(text)
    assert shown(text) == ["T001@1", "T002@2<T001"]
    assert codes(plan) == ["phases"]
    assert plan["items"][0]["files"] == ["src/app/main.py"]


def test_entries_without_ids_are_named_by_number_or_words() -> None:
    """Only where the plan has no better names, and with a warning."""
    assert shown("### Wave 1\n1. Write the parser\n2. Write the lexer\n### Wave 2\n3. Join them\n") == [
        "1@1",
        "2@1",
        "3@2",
    ]
    plan = read_plan("### Wave 1\n1. Write the parser\n### Wave 2\n1. Join them\n")
    assert [(item["id"], item["wave"]) for item in plan["items"]] == [("write-the-parser", 1), ("join-them", 2)]
    assert codes(plan) == ["no-ids"]


# ---- tables ----------------------------------------------------------------------------------------

ROWS = {
    "Task": ("01-a", "02-b"),
    "File(s)": ("`src/a.py`, `src/x.py`", "`docs/b.md`"),
    "Agent": ("implementer", "documentation-writer"),
    "Wave": ("1", "2"),
    "Dependencies": ("—", "01-a"),
}


@given(st.permutations(sorted(ROWS)))
def test_columns_in_any_order(order: list[str]) -> None:
    """Task, File(s), Agent, Wave, Dependencies."""
    lines = [order, ["---"] * len(order), *([ROWS[name][row] for name in order] for row in (0, 1))]
    found = items("\n".join("| " + " | ".join(line) + " |" for line in lines))
    assert [(i["id"], i["files"], i["agent"], i["wave"], i["depends_on"]) for i in found] == [
        ("01-a", ["src/a.py", "src/x.py"], "implementer", 1, []),
        ("02-b", ["docs/b.md"], "documentation-writer", 2, ["01-a"]),
    ]


@pytest.mark.parametrize(
    "name", ["Dependencies", "Depends On", "depends_on", "Deps", "Blocked by", "Prerequisites", "Requires"]
)
def test_dependency_columns_of_any_name(name: str) -> None:
    """All of them mean: first those."""
    assert shown(f"| # | Task | {name} |\n|-|-|-|\n| 1 | x | None |\n| 2 | y | Task 1 |\n") == ["1", "2<1"]


def test_a_column_of_what_an_item_blocks_is_the_same_backwards() -> None:
    """Blocks: 2 means that 2 waits for it."""
    assert shown("| # | Task | Blocks |\n|-|-|-|\n| 1 | x | 2 |\n| 2 | y | — |\n") == ["1", "2<1"]


def test_ids_proper_are_preferred_to_row_numbers() -> None:
    """`#` only counts the rows here."""
    text = "| # | Task ID | Title | Wave |\n|-|-|-|-|\n| 1 | TASK-007 | x | 1 |\n| 2 | TASK-009 | y | 1 |\n"
    assert shown(text) == ["TASK-007@1", "TASK-009@1"]


def test_an_id_and_a_title_in_one_cell() -> None:
    """`1.1: Refactor`."""
    text = "## Wave 1\n| Task | Agent |\n|-|-|\n| 1.1: Refactor | implementer |\n| **T2** | implementer |\n"
    assert [(i["id"], i["title"]) for i in items(text)] == [("1.1", "Refactor"), ("T2", "T2")]


def test_a_linked_file_gives_the_full_name() -> None:
    """The table says 01, the link says tasks/01-parser.md."""
    text = "| # | Task | Wave |\n|-|-|-|\n| 01 | [Parser](tasks/01-parser.md) | 1 |\n"
    assert shown(text, {"tasks/01-parser.md": "# Parser"}) == ["01-parser@1"]
    assert items(text)[0]["title"] == "Parser"


def test_group_rows_inside_a_table_are_no_items() -> None:
    """`| **Priority 1** |` is a heading in disguise."""
    assert shown(
        "| # | Task | Depends |\n|-|-|-|\n| **Priority 1** |\n| 1 | x | - |\n| **Priority 2** | | |\n| 2 | y | 1 |\n"
    ) == ["1", "2<1"]


@pytest.mark.parametrize(
    "header",
    [
        "ID | Criterion | Source",
        "Task | Failure Scenario | Likelihood | Impact | Mitigation",
        "Risk | Likelihood | Impact | Mitigation",
        "FR | Title | Covered By",
        "Test ID | Test Name | Expected",
        "File | Task | Description",
        "Agent | Uses NEEDS_REVISION? | Routing Target",
        "Level | Count | Tasks",
        "Pair | Shared Files | Wave",
        "Severity | Task | Finding",
        "ID | Task | Likelihood | Mitigation",
        "Task | Failure Scenario | Files",
    ],
)
def test_other_tables_are_not_items(header: str) -> None:
    """Criteria, pre-mortems, risks, coverage, tests, files by file."""
    count = header.count("|") + 1
    row = " | ".join(f"0{at}" for at in range(7, 7 + count))
    text = f"### Wave 1\n- 01-a (depends_on: none)\n\n## More\n\n| {header} |\n|{'---|' * count}\n| {row} |\n"
    assert shown(text) == ["01-a@1"]


def test_what_is_read_by_a_task_is_not_what_it_depends_on() -> None:
    """`Files Read (Dependencies)` holds files."""
    text = (
        "| Task | Files Modified (Write) | Files Read (Dependencies) |\n|-|-|-|\n| **01** x | `a.rs` | T02 "
        "outputs, `b.rs` |\n"
    )
    assert [(i["id"], i["files"], i["depends_on"]) for i in items(text)] == [("01", ["a.rs"], [])]


@pytest.mark.parametrize("other", ["Files Read", "Files NOT Modified", "Read-only files"])
def test_files_that_are_only_read_are_not_the_items_files(other: str) -> None:
    """Whichever column comes first."""
    text = f"| # | Task | {other} | Files |\n|-|-|-|-|\n| 1 | x | `b.rs` | `a.rs` |\n"
    assert items(text)[0]["files"] == ["a.rs"]


def test_files_told_file_by_file_belong_to_their_tasks() -> None:
    """Such a table adds files to items; it never makes one."""
    text = (
        "### Wave 1\n- 01-a (depends_on: none)\n- 02-b (depends_on: 01)\n\n"
        "| File | Tasks | Changes |\n|-|-|-|\n| `src/x.py` | 01 → 02 | x |\n| `src/y.py` | Task 02 | y |\n| "
        "`src/z.py` | 77 | z |\n"
    )
    assert [(i["id"], i["files"]) for i in items(text)] == [("01-a", ["src/x.py"]), ("02-b", ["src/x.py", "src/y.py"])]


@pytest.mark.parametrize(
    ("cell", "files", "count"),
    [
        ("`src/a.py` (modify), `b.md`", ["src/a.py", "b.md"], None),
        ("4 (ct-a, ct-b, ct-c, ct-d)", ["ct-a", "ct-b", "ct-c", "ct-d"], 4),
        ("3 modified", [], 3),
        ("src/a.py:10-20, Makefile", ["src/a.py", "Makefile"], None),
        ("`run()` in `src/a.py`", ["src/a.py"], None),
        ("`src/**/*.go`", ["src/**/*.go"], None),
        ("New file", [], None),
        ("—", [], None),
    ],
)
def test_file_cells(cell: str, files: list[str], count: int | None) -> None:
    """Names where there are names, else how many there are."""
    found = items(f"| # | Task | Files |\n|-|-|-|\n| 1 | x | {cell} |\n")[0]
    assert (found["files"], found.get("file_count")) == (files, count)


# ---- headings and fields ---------------------------------------------------------------------------


def test_a_heading_per_task_with_fields_below() -> None:
    """Inline, in lists, with the values in a list below the label."""
    text = """
## Tasks
### Task 1: Model
**Description:** The model.
**Files likely touched:**
- `src/model.py`
- `src/types.py`

**Effort:** Low

#### Notes
- Task 9 is not ours

### Task 2: View
- **Depends on:** Task 1
- **Agent:** documentation-writer
- **Estimated lines:** ~120
- **Wave:** 2
"""
    assert [
        (i["id"], i["title"], i["files"], i["depends_on"], i["agent"], i["effort"], i["lines"], i["wave"])
        for i in items(text)
    ] == [
        ("1", "Model", ["src/model.py", "src/types.py"], [], None, "Low", None, None),
        ("2", "View", [], ["1"], "documentation-writer", None, 120, 2),
    ]


def test_numbered_headings_under_a_wave_are_items() -> None:
    """With fields or without."""
    text = (
        "## Wave 1\n### 1. Model\nText.\n### 2. View\n**Files:** `v.py`\n## Wave 2\n### 3. Join\n**Depends on:** 1, 2\n"
    )
    assert shown(text) == ["1@1", "2@1", "3@2<1+2"]


def test_tasks_named_by_letters() -> None:
    """Task A, Task B."""
    assert shown("### Task A: Model\n**Dependencies:** none\n### Task B: View\n**Dependencies:** Task A\n") == [
        "A",
        "B<A",
    ]


def test_a_label_speaks_only_for_the_list_right_below_it() -> None:
    """A paragraph ends it."""
    text = "### Task 1: Model\n**Files:**\n- `src/m.py`\n\nSome text.\n\n- `old.md` stays as it is\n"
    assert items(text)[0]["files"] == ["src/m.py"]


def test_an_amount_is_no_id() -> None:
    """`3 files` is not item 3; `03 parser` is."""
    assert shown("### Wave 1\n- 01-a\n- 3 files stay untouched\n- 04 parser\n") == ["01-a@1", "04@1"]


def test_a_numbered_heading_is_a_section_unless_it_says_what_it_depends_on() -> None:
    """`## 3. Risks` is not item 3."""
    assert shown(
        "## 1. Overview\nText.\n## 2. Task Breakdown\n### 1.1 Parser\n**Dependencies:** none\n### 1.2 "
        "Lexer\n**Dependencies:** 1.1\n## 3. Risks\n- x\n"
    ) == ["1.1", "1.2<1.1"]


def test_code_blocks_say_nothing() -> None:
    """Graphs are drawn there, with arrows in either direction."""
    text = "### Wave 1\n- 01-a (depends_on: none)\n\n```\nWave 2: 02-b ──→ 01\n- 03-c (depends_on: 99)\n```\n"
    assert shown(text) == ["01-a@1"]


def test_a_plan_wrapped_in_one_fence_is_read() -> None:
    """Models like to do that."""
    assert shown(
        "```markdown\n# Plan\n\n### Wave 1\n\n- 01-a (depends_on: none)\n- 02-b (depends_on: none)\n```\n"
    ) == ["01-a@1", "02-b@1"]


def test_order_told_in_a_sentence_counts() -> None:
    """`Tasks 02–03 depend on 01`: only where both sides are items."""
    text = (
        "### Wave 1\n- 01-a\n- 02-b\n- 03-c\n\nKey:\n- Tasks 02–03 depend on 01 (its types)\n- Task 03 depends on "
        "luck\n- Everything depends on 02\n"
    )
    assert shown(text) == ["01-a@1", "02-b@1<01-a", "03-c@1<01-a"]


@pytest.mark.parametrize("fence", ["```yaml\n{}\n```", "{}"])
def test_a_plan_that_is_data_is_read(fence: str) -> None:
    """YAML or JSON with a list of tasks, where nothing else names an item."""
    yaml = (
        "tasks:\n  - id: T1\n    name: Model\n    files: [src/m.py]\n    dependencies: []\n  - id: T2\n    "
        "depends_on: [T1]\n    agent: implementer"
    )
    assert shown(fence.replace("{}", yaml)) == ["T1", "T2<T1"]
    assert shown('```json\n{"tasks": [{"id": 1, "name": "a"}, {"id": 2, "dependencies": [1]}]}\n```') == ["1", "2<1"]
    assert shown("```yaml\na: &a [1]\ntasks: [*a]\n```") == []


# ---- item files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "# Task 02: Parser\n\n**depends_on:** 01\n**agent:** documentation-writer\n",
        "# Parser\n\n- **Depends_on:** 01-a\n- **Agent:** `documentation-writer`\n",
        "---\nid: 02\ndepends_on: [01]\nagent: documentation-writer\n---\n\n# Parser\n",
        "---\ndepends_on:\n  - 01-a\nagent: 'documentation-writer'\n---\n# Parser\n",
        "# Parser\n\n## Dependencies\n\n- 01-a (its types)\n\n## Agent\n\ndocumentation-writer\n\n## Steps\n- 99-x\n",
        "# Parser\n\n| Field | Value |\n|-|-|\n| depends_on | 01 |\n| agent | documentation-writer |\n",
        "> **depends_on:** 01\n> **agent:** documentation-writer\n\n# Parser\n",
        "# Parser\n**Unit:** 7 · **Depends_On:** 01 · **Agent:** documentation-writer\n",
        "# Parser\ndepends_on: 01\nagent: documentation-writer\n",
    ],
)
def test_item_files_of_any_make(body: str) -> None:
    """Bold fields, lists, front matter, sections, tables, quotes."""
    files = {"tasks/01-a.md": "# Task 01: A\n**depends_on:** none\n", "tasks/02-parser.md": body}
    found = items("", files)
    assert [(i["id"], i["title"], i["depends_on"], i["agent"]) for i in found] == [
        ("01-a", "A", [], None),
        ("02-parser", "Parser", ["01-a"], "documentation-writer"),
    ]
    assert found[1]["source"] == "02-parser.md"


def test_plan_and_item_files_are_put_together() -> None:
    """Waves from the plan, agents from the files; neither alone says everything."""
    files = {
        "02-b.md": "# B\n**agent:** documentation-writer\n**depends_on:** 01\n",
        "01-a.md": "# A\n**Files:** `src/a.py`\n",
    }
    text = "### Wave 1\n- 01-a (depends_on: none)\n### Wave 2\n- 02-b (depends_on: 01)\n"
    assert shown(text, files) == ["01-a@1", "02-b@2<01-a"]
    assert [(i["agent"], i["files"]) for i in items(text, files)] == [
        (None, ["src/a.py"]),
        ("documentation-writer", []),
    ]
    assert read_plan(text, files)["warnings"] == []


def test_files_that_are_no_items_are_left_alone() -> None:
    """README, index, templates, hidden ones."""
    files = {
        name: "# x"
        for name in ("README.md", "index.md", "_template.md", ".x.md", "notes.txt", "template.md", "01-a.md")
    }
    assert shown("", files) == ["01-a"]


def test_only_what_the_plan_lists_is_an_item() -> None:
    """A task file that is left over is named and not run; an item without a file is run, and that is said."""
    plan = read_plan("### Wave 1\n- 01-a\n- 02-b\n", {"tasks/01-a.md": "# A", "tasks/03-c.md": "# C"})
    assert [item["id"] for item in plan["items"]] == ["01-a", "02-b"]
    assert [(w["code"], w["message"]) for w in plan["warnings"]] == [
        ("not-in-plan", "tasks/03-c.md is not listed in the plan; it is not run"),
        ("no-item-file", "item 02-b has no file of its own"),
    ]


def test_a_dependency_on_a_task_that_is_only_a_file_is_refused_by_name() -> None:
    """It is not in the plan, so nobody would do it."""
    found = items("### Wave 1\n- 02-b (depends_on: 01-a)\n", {"01-a.md": "# A", "02-b.md": "# B"})
    with pytest.raises(PlanRefused, match="02-b depends on '01-a'"):
        arrange(found)


def test_a_plan_that_lists_nothing_leaves_the_choice_to_its_task_files() -> None:
    """And that is said."""
    plan = read_plan("# Plan\n\nSee the task files.\n", {"tasks/01-a.md": "# A", "tasks/02-b.md": "# B"})
    assert [item["id"] for item in plan["items"]] == ["01-a", "02-b"]
    assert codes(plan) == ["from-files"]


# ---- what two places say ---------------------------------------------------------------------------


def test_an_index_and_a_list_are_one_plan() -> None:
    """01 in the table is 01-parser in the list; the longer name stays."""
    text = (
        "| # | Task | Output File |\n|-|-|-|\n| 01 | Write the parser | `p.py` |\n\n### Wave 1\n- 01-parser "
        "(depends_on: none)\n"
    )
    found = items(text)
    assert [(i["id"], i["title"], i["files"], i["wave"]) for i in found] == [
        ("01-parser", "Write the parser", ["p.py"], 1)
    ]


def test_two_waves_for_one_item_the_later_counts() -> None:
    """Never earlier than any place says, and the difference is reported."""
    plan = read_plan("| # | Task | Wave |\n|-|-|-|\n| 01 | x | 1 |\n\n### Wave 3\n- 01-x (depends_on: none)\n")
    assert [item["wave"] for item in plan["items"]] == [3]
    assert codes(plan) == ["waves-differ"]


def test_two_lists_of_dependencies_add_up() -> None:
    """And the difference is reported."""
    plan = read_plan(
        "### Wave 1\n- 01-a\n- 02-b\n### Wave 2\n- 03-c (depends_on: 01)\n", {"03-c.md": "# C\n**depends_on:** 02\n"}
    )
    assert plan["items"][2]["depends_on"] == ["01-a", "02-b"]
    assert "dependencies-differ" in codes(plan)


def test_the_agent_in_the_items_file_wins() -> None:
    """That is where the orchestrator is told to look."""
    plan = read_plan(
        "| # | Task | Agent |\n|-|-|-|\n| 01 | x | implementer |\n", {"01.md": "# X\n**agent:** documentation-writer\n"}
    )
    assert plan["items"][0]["agent"] == "documentation-writer"
    assert codes(plan) == ["agents-differ"]


def test_an_id_used_twice_in_one_list_stays_twice() -> None:
    """It is refused by name later; it is never quietly one item."""
    found = items("### Wave 1\n- 01 — Parser (depends_on: none)\n- 01 — Lexer (depends_on: none)\n")
    assert len(found) == 2
    with pytest.raises(PlanRefused, match="'01'"):
        arrange(found)


def test_numbers_that_begin_anew_in_each_wave_are_different_items() -> None:
    """They are told apart by their wave."""
    table = "| # | Task | Files |\n|-|-|-|\n"
    text = (
        f"## Wave 1\n{table}| 1 | Parser | `p.py` |\n| 2 | Lexer | `l.py` |\n\n## Wave 2\n{table}| 1 | Docs | "
        "`d.md` |\n"
    )
    assert [(i["id"], i["title"]) for i in items(text)] == [
        ("wave-1-1", "Parser"),
        ("2", "Lexer"),
        ("wave-2-1", "Docs"),
    ]


# ---- what a dependency means -----------------------------------------------------------------------

FIVE = "### Wave 1\n- 01-a\n- 02-b\n### Wave 2\n- 03-c\n- 04-d\n### Wave 3\n"


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("none", ""),
        ("None", ""),
        ("—", ""),
        ("-", ""),
        ("n/a", ""),
        ("[]", ""),
        ("nothing", ""),
        ("no dependencies", ""),
        ("none — but it defines the terms of 01", ""),
        ("none (see 02)", ""),
        ("(none — ready now)", ""),
        ("01", "1"),
        ("1", "1"),
        ("task-1", "1"),
        ("Task 01", "1"),
        ("`01-a`", "1"),
        ("a", "1"),
        ("01-a.md", "1"),
        ("01, 03", "1 3"),
        ("01 and 03", "1 3"),
        ("01 & 03", "1 3"),
        ("01 + 03", "1 3"),
        ("Tasks 1, 2 and 3", "1 2 3"),
        ("[01, 02]", "1 2"),
        ("01-03", "1 2 3"),
        ("01–03", "1 2 3"),
        ("01 – 03", "1 2 3"),
        ("1..3", "1 2 3"),
        ("Tasks 1-3", "1 2 3"),
        ("01 through 03", "1 2 3"),
        ("01-02, 04", "1 2 4"),
        ("01 (its types), 02 (its tests)", "1 2"),
        ("01, 02 — both change one file", "1 2"),
        ("01 ✓, 02 ✅", "1 2"),
        ("Wave 1", "1 2"),
        ("all of Wave 1", "1 2"),
        ("Wave 1 tasks", "1 2"),
        ("Waves 1-2", "1 2 3 4"),
        ("Wave 1, 2", "1 2 3 4"),
        ("all", "1 2 3 4"),
        ("All previous tasks", "1 2 3 4"),
        ("01 outputs", "1"),
    ],
)
def test_dependencies_in_every_notation(written: str, numbers: str) -> None:
    """Lists, ranges, waves, everything, nothing; remarks are remarks."""
    plan = read_plan(f"{FIVE}- 05-e\n  - depends_on: {written}\n")
    assert [name[1:2] for name in plan["items"][4]["depends_on"]] == numbers.split()
    assert plan["warnings"] == []


@pytest.mark.parametrize(
    ("written", "unknown"),
    [
        ("06", ["06"]),
        ("01, 77-x", ["77-x"]),
        ("Phase 4 complete", ["Phase 4 complete"]),
        ("the parser team", ["the parser team"]),
        ("01-zzz", ["01-zzz"]),
        ("Wave 9", ["Wave 9"]),
        ("05-09", ["05-09"]),
        ("C-01 hooks", ["C-01 hooks"]),
    ],
)
def test_a_dependency_that_cannot_be_resolved_is_named_never_dropped(written: str, unknown: list[str]) -> None:
    """It stays in the plan's own words, and the plan is refused with them."""
    plan = read_plan(f"{FIVE}- 05-e\n  - depends_on: {written}\n")
    assert [name for name in plan["items"][4]["depends_on"] if name not in ("01-a", "02-b", "03-c", "04-d")] == unknown
    assert codes(plan) == ["unknown-dependency"]
    with pytest.raises(PlanRefused) as refused:
        arrange(plan["items"])
    assert refused.value.names == unknown


def test_a_number_that_fits_two_items_is_not_guessed() -> None:
    """Which of the two? The planner has to say."""
    found = items("### Wave 1\n- 01-a\n- 01-b\n### Wave 2\n- 02-c (depends_on: 01)\n")
    with pytest.raises(PlanRefused) as refused:
        arrange(found)
    assert refused.value.names == ["01"]


def test_a_range_never_means_the_item_itself() -> None:
    """`01-03` on item 03 is everything before it."""
    assert shown("### Wave 1\n- 01-a\n- 02-b\n### Wave 2\n- 03-c (depends_on: 01-03)\n")[2] == "03-c@2<01-a+02-b"


def test_a_range_with_a_hole_is_said() -> None:
    """The items that exist count; the number that does not is named."""
    plan = read_plan("### Wave 1\n- 01-a\n- 03-c\n### Wave 2\n- 04-d (depends_on: 01-03)\n")
    assert plan["items"][2]["depends_on"] == ["01-a", "03-c"]
    assert [w["message"] for w in plan["warnings"]] == ["item 04-d depends on '01-03', which has no item 2"]


def test_ids_refer_to_each_other_whatever_their_spelling() -> None:
    """Zeros, prefixes, words."""
    assert shown(
        "| Task ID | Depends on |\n|-|-|\n| TASK-001 | - |\n| TASK-002 | 1 |\n| TASK-003 | task-2, T1 |\n"
    ) == [
        "TASK-001",
        "TASK-002<TASK-001",
        "TASK-003<TASK-002+TASK-001",
    ]


def test_side_by_side_on_one_file_is_a_warning() -> None:
    """In one wave two agents would overwrite each other."""
    text = (
        "| # | Task | Files | Depends |\n|-|-|-|-|\n| 1 | x | `a.py` | - |\n| 2 | y | `a.py` | - |\n| 3 | z | "
        "`a.py` | 1 |\n"
    )
    assert [(w["code"], w["items"]) for w in read_plan(text)["warnings"]] == [("shared-file", ["1", "2"])]


@pytest.mark.parametrize("text", ["", "# Plan\n\nWe will do it well.\n", "```\n- 01\n```"])
def test_a_plan_without_items_says_so(text: str) -> None:
    """Nothing found is worth a word; the pipeline decides what follows."""
    empty: Plan = {
        "items": [],
        "warnings": [{"code": "no-items", "message": "no item was found in the plan", "items": []}],
    }
    assert read_plan(text) == empty


def test_a_change_of_the_work_changes_the_digest_and_a_change_of_the_wave_does_not() -> None:
    """This is how a fix pass knows what is new."""

    def digest(text: str, body: str = "# A\nSteps.\n") -> str:
        return items(text, {"01-a.md": body})[0].get("digest", "")

    base = digest("### Wave 1\n- 01-a (depends_on: none)\n")
    assert base == digest("### Wave 4\n- 01-a (depends_on: none)\n")
    assert base != digest("### Wave 1\n- 01-a (depends_on: none)\n", "# A\nOther steps.\n")


@given(
    st.lists(
        st.sampled_from(
            [
                "### Wave 1",
                "### Wave 2",
                "- 01-a (depends_on: 02)",
                "- 02-b",
                "| # | Task | Wave |",
                "|---|---|---|",
                "| 1 | x | 2 |",
                "**depends_on:** 01",
                "## Task 3: x",
                "```",
                "- x",
                "Wave 1: 01, 02",
                "  - agent: y",
                "",
                "| File | Task |",
                "depends on 01",
                "(",
                "- **",
                "1. [ ] ",
                "## Dependencies",
            ]
        ),
        max_size=14,
    ),
    st.text(max_size=40),
)
def test_any_text_can_be_read(lines: list[str], noise: str) -> None:
    """Reading ends, ids are unique or refused, and every dependency is an item or in words."""
    text = "\n".join([*lines, noise])
    for item in items(text, {"02-b.md": text}):
        assert item["id"]
        assert item["wave"] is None or item["wave"] >= 1
        assert all(item["depends_on"])
