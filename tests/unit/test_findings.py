"""What counts as a finding, and what as a lesson."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.rules import review
from tenuto.knowledge.findings import answer, findings, lessons

REVIEWS = Path(__file__).resolve().parent.parent / "data" / "reviews"


def severities(text: str) -> list[str]:
    return [finding["severity"] for finding in findings(text)]


def test_a_table_row_with_a_severity_column_is_a_finding() -> None:
    """In any column order; place and line come from their columns."""
    text = """
| #  | File       | Line | Severity  | Issue            |
| -- | ---------- | ---- | --------- | ---------------- |
| 1  | `src/a.py` | 12   | **Major** | no check of `x\\|y` |
| 2  | src/b.py   |      | minor     | a long name      |
"""
    assert findings(text) == [
        {"severity": "Major", "text": "no check of x|y", "file": "src/a.py", "file_line": 12, "line": 4},
        {"severity": "minor", "text": "a long name", "file": "src/b.py", "file_line": None, "line": 5},
    ]


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("- [High] no input check", "High"),
        ("* **[Blocker]** no input check", "Blocker"),
        ("3. [Major] no input check", "Major"),
        ("### [Critical] no input check", "Critical"),
        ("## Finding 1 [Minor]", "Minor"),
        ("- no input check [Low]", "Low"),
        ("- in the parser [High] there is no input check", "High"),
        ("- [r-security] [Blocker] no input check", "Blocker"),
        ("- Severity: High", "High"),
        ("- **Severity:** Critical", "Critical"),
        ("- **Severity**: `Major`", "Major"),
        ("- no input check (severity: minor)", "minor"),
        ("### no input check, Severity: High", "High"),
        ("**Severity:** 🔴 Critical", "Critical"),
        ("Severity: High (was Low)", "High"),
        ("- [Horrible] no input check", "Horrible"),
        ("- [P0] no input check", "P0"),
        ("- no input check [Horrible]", "Horrible"),
        ("- Severity: Medium-High", "Medium-High"),
        ("- Severity:", ""),
    ],
)
def test_a_list_item_or_heading_with_a_severity_is_a_finding(line: str, severity: str) -> None:
    """The word is kept as written, also one that nobody knows: the rules count it as the worst."""
    assert severities(f"# Review\n\nText.\n\n{line}\n") == [severity]


@pytest.mark.parametrize(
    "line",
    [
        "No findings.",
        "The severity of this is high.",
        "- [ ] open box",
        "- [x] done box",
        "- [guide](docs/guide.md)",
        "- [guide][1]",
        "- [PASS] no secrets in the diff",
        "- [r-quality, step-7] Updated `review.md`",
        "- [AC-1] is covered",
        "- items[index] may be out of range",
        "- Severity: None",
        "| Severity | Count |\n| --- | --- |\n| Blocker | 0 |\n| Major | 0 |\n| Total | 0 |",
        "| Severity | Meaning |\n| --- | --- |\n| Blocker | must be fixed |",
        "| Severity | Finding | File |\n| --- | --- | --- |\n| — | None | — |",
        "| Severity | Finding |\n| --- | --- |",
        "| Risk | Mitigation |\n| --- | --- |\n| High | more tests |",
        "<!-- - [High] an example -->",
    ],
)
def test_what_only_looks_like_one_is_no_finding(line: str) -> None:
    """Boxes, links, passed checks, ids, tallies of nothing, legends, empty rows, comments."""
    assert findings(f"# Review\n\n{line}\n") == []


def test_a_row_without_a_severity_is_a_finding_of_unknown_severity() -> None:
    """Something was said, so something was found; the empty word counts as the worst."""
    assert severities("| Severity | Issue |\n|---|---|\n| | no input check |\n| ? | leak |") == ["", ""]


def test_a_tally_that_counts_something_is_a_finding() -> None:
    """The sum below it is not another one."""
    text = "| Severity | Open |\n|---|---|\n| Blocker | 0 |\n| Major | 2 |\n| **Total** | 2 |"
    assert severities(text) == ["Major"]


def test_a_table_needs_no_delimiter_line_and_no_outer_pipes() -> None:
    """A badly drawn table hides nothing."""
    assert severities("| Severity | Issue |\n| High | leak |") == ["High"]
    assert severities("Severity | Issue\n--- | ---\nHigh | leak") == ["High"]


@pytest.mark.parametrize("fence", ["```markdown", "```", "~~~", "````md"])
def test_a_review_inside_a_code_block_is_read(fence: str) -> None:
    """Models wrap whole documents in a fence; that must not hide a finding."""
    assert severities(f"{fence}\n# Review\n\n- [Blocker] leak\n{fence.strip('markdown')}\n") == ["Blocker"]


def test_a_heading_and_the_fields_below_it_are_one_finding() -> None:
    """Its place is taken from the fields."""
    text = """
### [High] Injection in the login
- **Severity:** High
- **Location:** `src/auth/login.ts:42`

### Finding 2: pool leak
**Severity:** Critical
**File:** src/db.py:9

- [Low] a long name in `src/c.py`
"""
    found = [(f["severity"], f["text"], f["file"], f["file_line"]) for f in findings(text)]
    assert found == [
        ("High", "[High] Injection in the login", "src/auth/login.ts", 42),
        ("Critical", "Finding 2: pool leak", "src/db.py", 9),
        ("Low", "[Low] a long name in src/c.py", "src/c.py", None),
    ]


@pytest.mark.parametrize(
    ("name", "found", "approved"),
    [
        ("review-approved.json", [], True),
        ("review-single-file-issues.json", [("HIGH", 42), ("MEDIUM", 67)], False),
        ("review-multi-file-issues.json", [("HIGH", 42), ("MEDIUM", 67), ("HIGH", 15), ("LOW", 88)], False),
    ],
)
def test_json_reviews_of_real_users_are_read(name: str, found: list[tuple[str, int]], approved: bool) -> None:
    """Bare, in a fence, or with words around them."""
    text = (REVIEWS / name).read_text()
    for shape in (text, f"Here it is:\n\n```json\n{text}\n```\n", f"My review: {text} That is all."):
        assert [(f["severity"], f["file_line"]) for f in findings(shape)] == found
        assert review(answer(shape))["approved"] is approved


def test_json_issues_of_any_make_are_findings() -> None:
    """An issue that is only text, one without severity, one with file and line apart."""
    text = (
        '{"issues": ["leak", {"issue": "x"}, {"severity": "major", "description": "y", "file": "Makefile", "line": 3}]}'
    )
    assert [(f["severity"], f["text"], f["file"], f["file_line"]) for f in findings(text)] == [
        ("", "leak", None, None),
        ("", "x", None, None),
        ("major", "y", "Makefile", 3),
    ]


@pytest.mark.parametrize("text", ["", "prose", "[1, 2]", '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": ', "{" * 5000])
def test_an_answer_that_is_no_json_object_is_none(text: str) -> None:
    """Duplicate keys, NaN, half an object, depth: none of it is an answer."""
    assert answer(text) is None


@given(st.text(alphabet=st.sampled_from('|[]{}:-*#`>\\ \n"Severity:High0→x'), max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    """Whatever an agent writes, reading it ends, and each finding stands on a line of the text."""
    assert all(0 <= finding["line"] <= text.count("\n") + 1 for finding in findings(text))
    lessons(text)


# ---- lessons ---------------------------------------------------------------------------------------


def learned(text: str) -> list[tuple[str, str]]:
    return [(lesson["issue"], lesson["resolution"]) for lesson in lessons(text)]


@pytest.mark.parametrize("arrow", ["→", "->", "=>", "⇒"])
def test_issue_arrow_resolution_is_a_lesson(arrow: str) -> None:
    """With either arrow, in a list or alone, with or without who said it."""
    assert learned(f"- the tests were flaky {arrow} pinned the seed") == [("the tests were flaky", "pinned the seed")]
    assert learned(f"Issue: port 80 is taken {arrow} Resolution: used another port") == [
        ("port 80 is taken", "used another port")
    ]
    assert learned(f"- [implementer, step-5] cache was stale {arrow} cleared it first.") == [
        ("cache was stale", "cleared it first.")
    ]


def test_in_a_section_about_lessons_one_word_is_enough() -> None:
    """Elsewhere it would be noise."""
    assert learned("## Lessons Learned\n- Timeout → retry\n## Next\n- Timeout → retry again") == [("Timeout", "retry")]
    assert learned("Lesson: timeout → retry") == [("timeout", "retry")]


@pytest.mark.parametrize(
    "line",
    [
        "- 01 → 08 → 11 → 12",
        "- Step 1 → Step 2",
        "- `read(text) -> list` gives a list",
        "- design review → planning → implementation of it all",
        "| a failed thing → a repaired thing | x |\n|---|---|",
        "```\nthe tests were flaky → pinned the seed\n```",
        "<!-- Never pruned. Format: - [agent-name, step-N] Issue → Resolution. -->",
        "- Issue → Resolution",
        "- def read(text: str)->int returns a number",
    ],
)
def test_other_arrows_are_no_lessons(line: str) -> None:
    """Lessons are never pruned, so chains, drawings, code and templates stay out."""
    assert learned(line) == []


def test_a_lesson_said_twice_is_learned_once() -> None:
    """In the order of the text."""
    assert learned("- a thing broke → it was mended\n- a thing broke → it was mended") == [
        ("a thing broke", "it was mended")
    ]
