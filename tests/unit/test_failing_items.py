"""Which items a verifier's words name as failing, in every form in which verifiers write."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.records.run import PlannedItem
from tenuto.knowledge.findings import failing


def item(name: str, title: str = "") -> PlannedItem:
    made: Any = {
        "id": name,
        "title": title or name,
        "files": [],
        "depends_on": [],
        "agent": None,
        "wave": None,
        "description": "",
        "effort": None,
        "lines": None,
    }
    found: PlannedItem = made
    return found


ITEMS = [item("01-alpha"), item("02-beta"), item("03-gamma"), item("04-delta")]

CASES = {
    "a list of what is to be done": (
        "## Actionable Items\n\n1. Fix 01-alpha: the colour is kept in two places.\n2. 03-gamma: move the toggle.\n",
        "1 3",
    ),
    "the verdict line": ("NEEDS_REVISION: 1 tasks failed verification — task IDs: 01-alpha", "1"),
    "the verdict line with several": ("NEEDS_REVISION: 2 tasks failed — task IDs: 01-alpha, 04-delta", "1 4"),
    "a section of ids beside a severity that names none": (
        "## Findings\n\n- [High] the build is slow\n\n### Failing Task IDs\n\n- Task 01-alpha\n",
        "1",
    ),
    "a section of ids, in one line": (
        "## Failing tasks\n\n01-alpha, 02-beta\n\n## Documented for later\n\n04-delta\n",
        "1 2",
    ),
    "a table of findings, and a section of ids": (
        "| Severity | Task | Wrong |\n|---|---|---|\n| Major | 01-alpha | x |\n\n## Failing tasks\n\n02-beta\n",
        "1 2",
    ),
    "prose, sentence by sentence": ("All tasks 01-alpha and 02-beta verified. Task 03 fails.", "3"),
    "prose, clause by clause": ("01-alpha passes, 02-beta fails.", "2"),
    "two halves of a sentence": ("Tasks 01-alpha, 02-beta and 04-delta pass, but 03-gamma does not.", "3"),
    "what is behind a label": ("Failed: 01-alpha, passed: 02-beta, 03-gamma", "1"),
    "labels in the other order": ("Verified: 01-alpha, 02-beta. Not verified: 03-gamma.", "3"),
    "only one fails": ("Only 03-gamma fails, the others (01-alpha, 02-beta) are verified.", "3"),
    "a negated word": ("01-alpha is verified. 02-beta is not verified. 03-gamma has no issues.", "2"),
    "a table of states": (
        """\
| Task | Status | Evidence |
|---|---|---|
| 01-alpha | done | ok |
| 02-beta | incomplete | AC-2 no |
| 03-gamma | not started | - |
| 04-delta | verified | no errors |
""",
        "2 3",
    ),
    "a table of signs": (
        "| Task | Result |\n|---|---|\n| 01 | ✅ |\n| 02 | ❌ |\n| 03 | ⚠️ partial |\n| 04 | PASS |\n",
        "2 3",
    ),
    "a table without a header for it": (
        "| Item | |\n|---|---|\n| 01-alpha | PASS |\n| 02-beta | FAIL: no tests |\n",
        "2",
    ),
    "a row that mentions another item": (
        "| Task | Status | Note |\n|---|---|---|\n| 01-alpha | verified | |\n| 02-beta | failed | since 01-alpha |\n",
        "2",
    ),
    "a section for each task": (
        """\
### Task 01: Alpha

- **Status:** verified
- **Criteria:**
  - [x] AC1
- **Issues:** None

### Task 02: Beta

- **Status:** partially-verified
- **Criteria:**
  - [x] AC1
  - [ ] AC2

### Task 03: Gamma

- **Status:** failed
- **Issues:** the file does not exist
""",
        "2 3",
    ),
    "headings with the state": ("### 01-alpha — PASS\n\nfine\n\n### 02-beta — FAIL\n\nNo test.\n", "2"),
    "boxes": ("## Tasks\n\n- [x] 01-alpha\n- [ ] 02-beta\n- [X] 03-gamma\n", "2"),
    "sections of good and bad": ("## Verified tasks\n\n- 01-alpha\n- 02-beta\n\n## Incomplete\n\n- 03-gamma\n", "3"),
    "below an entry of a list": ("- Passed:\n  - 01-alpha\n- Failed:\n  - 02-beta\n  - 04-delta\n", "2 4"),
    "bare numbers where tasks are listed": ("**Failing tasks:** 2, 4\n", "2 4"),
    "a range": ("Tasks 01-03 fail.", "1 2 3"),
    "JSON": (
        '```json\n{"verdict": "NEEDS_REVISION", "failing_tasks": ["02-beta"], "verified": ["01-alpha"]}\n```\n',
        "2",
    ),
    "a count is no name": ("13 tasks verified, 2 partially-verified, 1 failed. Failing: 03-gamma", "3"),
    "no word for good or bad: those that are named": ("Bitte 02-beta und 04-delta überarbeiten.", "2 4"),
    "nothing but praise": ("01-alpha, 02-beta, 03-gamma and 04-delta are verified.", ""),
    "nothing at all": ("The build is broken.", ""),
    "an id inside of another word": ("The folder x01-alphabet is broken.", ""),
    "said to be bad once, and good elsewhere": ("01-alpha builds: ok.\n\n## Failing tasks\n\n- 01-alpha\n", "1"),
    "bold labels": ("**Failing:** `02-beta`\n**Passing:** `01-alpha`, `03-gamma`\n", "2"),
    "a sentence that announces a list": (
        "The following tasks failed verification:\n\n- 02-beta\n- 3\n\nThe rest is verified: 01-alpha, 04-delta\n",
        "2 3",
    ),
    "signs before the names": ("❌ 02-beta — tests missing; ✅ 01-alpha", "2"),
    "words in brackets": ("02-beta (failed), 03-gamma (failed), 01-alpha (passed)", "2 3"),
    "reasons in brackets": ("Failing: 02-beta (missing test), 03-gamma (wrong colour). Passing: 01-alpha", "2 3"),
    "a fraction": ("- Task 02-beta: FAIL (2/5 criteria)\n- Task 01-alpha: PASS (5/5 criteria)\n", "2"),
    "criteria": ("- 01-alpha: all criteria met\n- 02-beta: criterion 2 not met\n", "2"),
    "no failing tasks": ("Failing tasks: none\n\nVerified: 01-alpha, 02-beta\n", ""),
    "not passing": ("## Not passing\n\n- 04-delta\n\n## Passing\n\n- 01-alpha\n", "4"),
    "a heading in words": ("## Tasks that need rework\n\n* `03-gamma` (the toggle)\n", "3"),
    "must not": ("02-beta must not crash on empty input. 01-alpha is fine.", "2"),
    "numbers of lines": ("Task 2 fails at line 3 of src/a.py; 4 tests are red.", "2"),
    "what must be done": ("02-beta must handle empty input; 01-alpha needs nothing.", "2"),
}


@pytest.mark.parametrize("case", CASES)
def test_failing_items_are_found_as_verifiers_name_them(case: str) -> None:
    text, wanted = CASES[case]
    ids = {str(int(one["id"][:2])): one["id"] for one in ITEMS}
    assert failing([text], ITEMS) == [ids[number] for number in wanted.split()]


def test_what_is_bad_in_one_text_counts_however_open_another_is() -> None:
    assert failing(["See 01-alpha and 02-beta.", "NEEDS_REVISION: task IDs: 03-gamma"], ITEMS) == ["03-gamma"]
