"""What RETRIEVE hands to each phase: which artifacts, which sections, within which budget, with which receipt."""

from __future__ import annotations

import pytest

from tenuto.errors import BadInput
from tenuto.knowledge.packs import (
    PHASES,
    UnknownName,
    estimate_tokens,
    make_pack,
    part_text,
    render_pack,
    render_receipts,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.knowledge.packs import Artifact, Pack

SPEC = """# Basket

## Background

It holds what a customer wants to buy, and it was rewritten twice.

## Types

```python
class Basket:
    items: list[str]
```

## Signatures

```python
def add(basket: Basket, item: str) -> Basket:
    return Basket([*basket.items, item])
```

## Edge cases

- an empty basket is valid

## Files

- `shop/basket.py` (new)

## Acceptance criteria

- Adding shows the new total
"""

ARCHITECT = """# Design

## Decisions

- Baskets are values

## Placement

- `shop/basket.py`

## Constraints

- No database

## Edge cases

- two tabs at once
"""

AUDIT = """{
  "audit_type": "design",
  "verdict": "DESIGN_FLAW",
  "iteration": 1,
  "issues": [
    {
      "severity": "major",
      "description": "the basket knows prices",
      "location": "section 2"
    }
  ],
  "kickback_context": {
    "issues_to_fix": ["move prices out"],
    "preserve": ["baskets are values"],
    "tests_to_verify": ["tests/test_basket.py"]
  },
  "memory_candidates": [
    {"type": "pattern", "title": "values", "content": "long"}
  ]
}
"""


def artifact(name: str, text: str, path: str = "") -> Artifact:
    return {"name": name, "path": path or f"docs/{name}.md", "text": text, "sha256": f"{name:0<64}"}


def retrieve(phase: str, *artifacts: Artifact, needs: tuple[str, ...] = (), limit: int | None = None) -> str:
    return render_pack(make_pack(list(artifacts), phase, needs, limit))


def test_the_phases_are_the_seeds() -> None:
    """Every `for_phase` of the seed is there, and no other."""
    assert set(PHASES) == set(
        "design-audit spec implementation testing impl-audit revision fix graduate resume".split()
    )


def headings(pack: Pack) -> list[str]:
    return [part["heading"] for part in pack["parts"]]


def test_an_implementer_gets_the_contract_and_not_the_story() -> None:
    pack = make_pack([artifact("spec", SPEC)], "implementation")
    assert headings(pack) == ["Basket", "Types", "Signatures", "Edge cases", "Files", "Acceptance criteria"]
    assert "rewritten twice" not in render_pack(pack)


def test_the_pack_says_where_each_text_comes_from_and_what_was_left_out() -> None:
    rendered = retrieve("implementation", artifact("spec", SPEC))
    assert rendered.startswith("=== spec: docs/spec.md (condensed) ===\n# Basket\n\n## Types\n")
    assert rendered.endswith("- Adding shows the new total\n=== end of spec ===")
    [receipt] = make_pack([artifact("spec", SPEC)], "implementation")["receipts"]
    assert receipt["note"] == "condensed; left out: Background"


def test_the_design_fills_in_what_the_specification_lacks() -> None:
    """A design is in the pack where the specification lacks a kind, which then is in the pack whole."""
    lacking = SPEC.replace("## Edge cases\n\n- an empty basket is valid\n", "")
    both = retrieve("implementation", artifact("spec", lacking), artifact("architect", ARCHITECT))
    assert "two tabs at once" in both
    assert "(whole: no edge-cases found)" in both
    assert "rewritten twice" in both
    assert "two tabs at once" not in retrieve(
        "implementation", artifact("spec", SPEC), artifact("architect", ARCHITECT)
    )


@pytest.mark.parametrize("phase", ["implementation", "testing"])
def test_without_a_specification_the_design_is_handed_over(phase: str) -> None:
    """A POC has no specification: never nothing while something is stored."""
    design = "# Counter widget\n\nThe widget keeps a count.\n\n## Approach\n\nLocal storage, no server.\n"
    for needs in ((), ("all",), ("architect",)):
        pack = make_pack([artifact("architect", design)], phase, needs)
        assert "".join(map(part_text, pack["parts"])) == design
        assert pack["notes"]["docs/architect.md"].startswith("whole: no signatures and no types")
        assert pack["receipts"][0]["tokens_left_out"] == 0


def test_what_is_asked_for_by_name_is_given() -> None:
    both = (artifact("spec", SPEC), artifact("architect", ARCHITECT))
    rendered = retrieve("implementation", *both, needs=("architect-output",))
    assert "two tabs at once" in rendered
    assert "an empty basket is valid" not in rendered


def test_a_specification_writer_gets_what_was_decided_and_what_was_not() -> None:
    """Alternatives and rationale tell decisions; background and references do not."""
    text = ARCHITECT + "\n## Alternatives considered\n\nRows, no.\n\n## References\n\nA book.\n"
    rendered = retrieve("spec", artifact("architect", text))
    assert "Rows, no." in rendered
    assert "A book." not in rendered


def test_a_text_without_headings_is_returned_whole_and_flagged() -> None:
    text = "A few words.\n\nNo heading, no code; one of them must be wrong.\n"
    pack = make_pack([artifact("architect", text)], "spec")
    assert [part_text(part) for part in pack["parts"]] == [text]
    assert "=== architect: docs/architect.md (whole: it has no headings) ===" in render_pack(pack)
    assert pack["receipts"][0]["tokens_left_out"] == 0


# --- revisions ------------------------------------------------------------------------------------------


DELTA = "# Design, revised\n\n## Changes made\n\n- Baskets are rows\n\n## Placement: unchanged\n"
COMPLETE = ARCHITECT.replace("Baskets are values", "Baskets are rows of a table") + "\n## Changes\n\nOne.\n"


def designs(*texts: str) -> list[Artifact]:
    return [
        artifact("architect", text, f"architect-revision-{number}.md" if number else "architect.md")
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    "phase", ["design-audit", "spec", "implementation", "testing", "impl-audit", "revision", "graduate"]
)
def test_a_design_and_its_delta_are_handed_over_together(phase: str) -> None:
    rendered = retrieve(phase, *designs(ARCHITECT, DELTA), needs=("architect",))
    assert rendered.index("Baskets are values") < rendered.index("Baskets are rows")


def test_a_revision_that_has_all_of_it_stands_for_the_design() -> None:
    pack = make_pack(designs(ARCHITECT, COMPLETE), "design-audit")
    assert [part["path"] for part in pack["parts"]] == ["architect-revision-1.md"]
    assert render_receipts(pack)[0].endswith(
        f"tokens in: 0, left out: {estimate_tokens(ARCHITECT)} (architect-revision-1.md has all of it)"
    )


@pytest.mark.parametrize("phase", ["impl-audit", "revision"])
def test_where_the_original_is_asked_for_it_is_there(phase: str) -> None:
    pack = make_pack(designs(ARCHITECT, COMPLETE), phase, ("architect",))
    assert [part_text(part) for part in pack["parts"]] == [ARCHITECT, COMPLETE]


def test_deltas_of_a_complete_revision_stay_with_it() -> None:
    pack = make_pack(designs(ARCHITECT, COMPLETE, DELTA), "design-audit")
    assert [part["path"] for part in pack["parts"]] == ["architect-revision-1.md", "architect-revision-2.md"]
    pack = make_pack(designs(ARCHITECT, DELTA, COMPLETE), "design-audit")
    assert len(pack["parts"]) == 3, "the last one lacks headings of the delta"


@pytest.mark.parametrize("revision", ["rev", "# Design\n", ARCHITECT[: len(ARCHITECT) // 2]])
def test_what_is_shorter_or_has_no_headings_is_a_delta(revision: str) -> None:
    assert len(make_pack(designs(ARCHITECT, revision), "design-audit")["parts"]) == 2
    assert len(make_pack(designs("original", revision), "design-audit")["parts"]) == 2


# --- needs ----------------------------------------------------------------------------------------------


def test_needs_can_be_written_in_the_systems_other_words() -> None:
    """Users of that system write architect-output, spec-signatures, design-audit-feedback, all."""
    audit = artifact("design-audit", AUDIT)
    architect = artifact("architect", ARCHITECT)
    other = retrieve("revision", architect, audit, needs=("design-audit-feedback", "architect-output"))
    assert other == retrieve("revision", architect, audit, needs=("architect", "design-audit"))
    assert other == retrieve("revision", architect, audit, needs=("all",))
    assert retrieve("implementation", artifact("spec", SPEC), needs=("spec-signatures",)) == retrieve(
        "implementation", artifact("spec", SPEC)
    )


@pytest.mark.parametrize(
    ("phase", "needs", "code", "allowed"),
    [
        ("deployment", (), "unknown-phase", "graduate"),
        ("spec", ("nonsense",), "unknown-need", "architect"),
        ("graduate", ("spec",), "unknown-need", "debt"),
    ],
)
def test_an_unknown_name_is_refused_with_the_names_that_would_do(
    phase: str, needs: tuple[str, ...], code: str, allowed: str
) -> None:
    with pytest.raises(UnknownName) as refused:
        make_pack([], phase, needs)
    assert refused.value.code == code
    assert allowed in refused.value.allowed
    assert allowed in refused.value.hint
    assert isinstance(refused.value, ValueError)


def test_memory_is_there_when_asked_for_and_only_then() -> None:
    memory = artifact("memory", "## Project Memory\n\n### Decisions\n[No project decisions recorded yet]\n")
    architect = artifact("architect", ARCHITECT)
    assert "Project Memory" in retrieve("design-audit", architect, memory, needs=("memory", "architect-output"))
    assert "Project Memory" not in retrieve("design-audit", architect, memory)


def test_a_need_without_an_artifact_is_named() -> None:
    assert make_pack([artifact("architect", ARCHITECT)], "graduate")["missing"] == [
        "implementation",
        "debt",
        "manifest",
    ]


def test_graduation_has_no_specification() -> None:
    """The seed: spec.md is not returned, the POC skipped that phase."""
    given = [artifact(name, f"{name}!\n") for name in ("architect", "spec", "implementation", "debt", "manifest")]
    rendered = retrieve("graduate", *given)
    assert [name in rendered for name in ("architect!", "implementation!", "debt!", "manifest!", "spec!")] == [
        True
    ] * 4 + [False]


def test_an_implementation_audit_reads_everything() -> None:
    given = [
        artifact("implementation", "one\n", "impl/task-001.md"),
        artifact("implementation", "two\n", "impl/task-002.md"),
    ]
    pack = make_pack([artifact("architect", ARCHITECT), artifact("spec", SPEC), *given], "impl-audit")
    assert [part_text(part) for part in pack["parts"]] == [ARCHITECT, SPEC, "one\n", "two\n"]


# --- feedback -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audit", [AUDIT, "The login does not check the password.\n", "## Issues\n1. [MAJOR] a.py:1\n"])
@pytest.mark.parametrize(
    ("phase", "name"), [("revision", "design-audit"), ("fix", "impl-audit"), ("impl-audit", "impl-audit")]
)
def test_feedback_is_handed_over_whole(phase: str, name: str, audit: str) -> None:
    """What to fix, what to preserve, where: every line of an audit counts."""
    assert audit.strip() in retrieve(phase, artifact(name, audit))


RESULTS = """# Test Results
## Summary
- Total: 40
- Failed: 3
## Failures (auth module)
1. login rejects expired token
   at src/auth.ts:88: wanted 401, was 200
## Passed
- 37 others
"""


@pytest.mark.parametrize("limit", [None, 1, 50])
def test_who_fixes_gets_every_failing_test_whatever_the_budget(limit: int | None) -> None:
    rendered = retrieve("fix", artifact("test-results", RESULTS), artifact("impl-audit", AUDIT * 20), limit=limit)
    assert RESULTS.strip() in rendered


def test_who_fixes_gets_the_audit_the_code_and_the_tests() -> None:
    tests = "# Tests\n\n- `tests/test_basket.py::test_add`\n\n## Run command\n\n```\npytest tests/test_basket.py\n```\n"
    rendered = retrieve(
        "fix", artifact("impl-audit", AUDIT), artifact("implementation", "code\n"), artifact("tests", tests)
    )
    for text in ("section 2", "code", tests.strip()):
        assert text in rendered


# --- budget ---------------------------------------------------------------------------------------------


def test_a_budget_drops_whole_sections_the_least_useful_first_and_says_so() -> None:
    """What names no kind goes first, then files, edge cases, types, signatures."""
    order = ["Signatures", "Types", "Edge cases", "Files"]
    counts = []
    for limit in range(40, 140, 5):
        pack = make_pack([artifact("spec", SPEC)], "implementation", (), limit)
        there = [title for title in order if title in headings(pack)]
        assert there == order[: len(there)]
        assert estimate_tokens(render_pack(pack)) <= limit
        assert ("DROPPED for max_tokens" in render_pack(pack)) == bool(len(pack["parts"]) < 6)
        for part in pack["parts"]:
            assert part_text(part) in SPEC
        counts.append(len(there))
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 4)


def test_an_aside_of_a_whole_text_is_dropped_first() -> None:
    lacking = SPEC.replace("## Edge cases\n\n- an empty basket is valid\n", "")
    limit = estimate_tokens(retrieve("implementation", artifact("spec", lacking))) - 5
    pack = make_pack([artifact("spec", lacking)], "implementation", (), limit)
    assert [part["heading"] for part in pack["dropped"]] == ["Background"]
    assert f"DROPPED for max_tokens {limit}: Background (" in render_pack(pack)
    assert "; dropped for max_tokens: Background" in pack["receipts"][0]["note"]


def test_headings_above_a_section_stay_where_their_own_text_was_dropped() -> None:
    """An edge case must not end up below the wrong task."""
    words = "Some words about it. " * 40
    tasks = "".join(f"## Task {n}\n\n{words}\n\n### Edge cases\n\n- case {n}\n\n" for n in (1, 2))
    rendered = retrieve("implementation", artifact("spec", f"# All\n\n{tasks}"), limit=120)
    assert "## Task 1\n### Edge cases\n\n- case 1\n\n## Task 2\n### Edge cases\n\n- case 2\n" in rendered


def test_where_no_section_fits_the_most_useful_one_is_cut_between_blocks() -> None:
    cases = "".join(f"- case {number} is refused\n" for number in range(100))
    text = f"## Errors\n\nThese.\n\nAnd these.\n\n{cases}"
    pack = make_pack([artifact("spec", text)], "implementation", (), 60)
    assert [part_text(part) for part in pack["parts"]] == ["## Errors\n\nThese.\n\nAnd these.\n\n"]
    assert "DROPPED for max_tokens 60: Errors (" in render_pack(pack)


def test_a_text_without_sections_is_cut_at_a_blank_line() -> None:
    text = "".join(f"Paragraph {number}\ngoes on.\n\n" for number in range(50))
    [part] = make_pack([artifact("spec", text)], "implementation", (), 60)["parts"]
    assert part_text(part).startswith("Paragraph 0\ngoes on.\n")
    assert part_text(part).rstrip("\n").endswith("goes on.")


def test_full_parts_ignore_a_budget() -> None:
    """Where the seed says full, it is full."""
    rendered = retrieve("design-audit", artifact("architect", ARCHITECT), artifact("design-audit", AUDIT), limit=1)
    assert ARCHITECT.strip() in rendered
    assert "move prices out" not in rendered


def test_feedback_outlives_the_code_it_is_about() -> None:
    code = "x = 1\n" * 500
    rendered = retrieve("fix", artifact("impl-audit", AUDIT), artifact("implementation", code), limit=300)
    assert "move prices out" in rendered
    assert rendered.count("x = 1") < 500


@pytest.mark.parametrize("limit", [0, -5])
def test_a_budget_of_nothing_is_refused(limit: int) -> None:
    with pytest.raises(BadInput, match="max_tokens"):
        make_pack([], "spec", (), limit)


# --- receipts -------------------------------------------------------------------------------------------


def test_a_receipt_names_artifact_hash_tokens_and_manner() -> None:
    pack = make_pack([artifact("spec", SPEC)], "implementation")
    [receipt] = pack["receipts"]
    assert receipt["tokens_in"] + receipt["tokens_left_out"] == estimate_tokens(SPEC)
    tokens = f"tokens in: {receipt['tokens_in']}, left out: {receipt['tokens_left_out']}"
    [line] = render_receipts(pack)
    assert line == f"RECEIPT: docs/spec.md sha256:{'spec':0<64} {tokens} (condensed; left out: Background)"


def test_every_artifact_has_a_receipt_also_if_the_phase_does_not_read_it() -> None:
    pack = make_pack(
        [artifact("spec", SPEC), artifact("architect", ARCHITECT)],
        "implementation",
        unread=[{"name": "debt", "path": "debt.md", "sha256": "0", "size": 9, "reason": "not for this phase"}],
    )
    assert [receipt["path"] for receipt in pack["receipts"]] == ["docs/spec.md", "docs/architect.md", "debt.md"]
    assert [receipt["tokens_in"] for receipt in pack["receipts"]][1:] == [0, 0]
    assert [receipt["tokens_left_out"] for receipt in pack["receipts"]][1:] == [estimate_tokens(ARCHITECT), 3]


def test_the_same_text_in_two_artifacts_is_in_the_pack_twice() -> None:
    """Nothing is taken out because it was said before: a reader must not have to look for it elsewhere."""
    rendered = retrieve("testing", artifact("spec", SPEC), artifact("implementation", SPEC))
    assert rendered.count("an empty basket is valid") == 2


def test_an_open_fence_does_not_swallow_the_next_artifact() -> None:
    text = "## Signatures\n\n```go\nfunc A()\n\n## Edge cases\n\n- an empty one is skipped\n"
    assert retrieve("implementation", artifact("spec", text)).endswith("is skipped\n```\n=== end of spec ===")
