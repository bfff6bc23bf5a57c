"""What RETRIEVE hands to each phase: which artifacts, which parts, within which budget, with which receipt."""

from __future__ import annotations

import pytest

from tenuto.errors import BadInput
from tenuto.knowledge.phases import PHASES, UnknownName
from tenuto.knowledge.retrieve import make_pack, render_dropped, render_pack, render_receipts
from tenuto.knowledge.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.knowledge.packs import Artifact

SPEC = """# Basket

## Overview

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


def test_an_implementer_gets_the_contract_and_not_the_story() -> None:
    pack = make_pack([artifact("spec", SPEC)], "implementation")
    assert {part["kind"] for part in pack["parts"]} == {"types", "signatures", "edge-cases", "files"}
    rendered = render_pack(pack)
    assert "def add(basket: Basket, item: str) -> Basket:" in rendered
    assert "return Basket([*basket.items, item])" not in rendered
    assert "rewritten twice" not in rendered


def test_a_tester_gets_expected_behaviors_instead_of_files() -> None:
    rendered = retrieve("testing", artifact("spec", SPEC))
    assert "- Adding shows the new total" in rendered
    assert "shop/basket.py" not in rendered


def test_each_part_says_where_it_comes_from() -> None:
    """Artifact, path, heading and line, so that a reader can look it up."""
    [part] = [
        part for part in make_pack([artifact("spec", SPEC)], "implementation")["parts"] if part["kind"] == "files"
    ]
    assert (part["artifact"], part["path"], part["heading"], part["line"]) == ("spec", "docs/spec.md", "Files", 27)
    rendered = retrieve("implementation", artifact("spec", SPEC))
    assert rendered.startswith("=== spec: docs/spec.md (condensed) ===\n## Types\n")
    assert rendered.endswith("## Files\n- `shop/basket.py` (new)\n=== end of spec ===")


def test_the_architect_fills_in_what_the_specification_lacks() -> None:
    """Kinds of part the specification has are not looked for in the architect's document again."""
    lacking = SPEC.replace("## Edge cases\n\n- an empty basket is valid\n", "")
    assert "two tabs at once" in retrieve("implementation", artifact("spec", lacking), artifact("architect", ARCHITECT))
    assert "two tabs at once" not in retrieve(
        "implementation", artifact("spec", SPEC), artifact("architect", ARCHITECT)
    )


def test_what_is_asked_for_by_name_is_given() -> None:
    both = (artifact("spec", SPEC), artifact("architect", ARCHITECT))
    rendered = retrieve("implementation", *both, needs=("architect-output",))
    assert "two tabs at once" in rendered
    assert "an empty basket is valid" not in rendered


def test_a_specification_writer_gets_decisions_placement_and_constraints() -> None:
    pack = make_pack([artifact("architect", ARCHITECT)], "spec")
    assert [part["kind"] for part in pack["parts"]] == ["decisions", "files", "constraints"]
    assert pack["absent"] == ["architect: patterns"]
    assert "NOT FOUND: architect: patterns" in render_pack(pack)


def test_a_text_without_any_match_is_returned_whole_and_flagged() -> None:
    """Never nothing: who cannot find a part hands over the artifact and says so."""
    text = "A few words.\n\nNo heading, no code; one of them must be wrong.\n"
    pack = make_pack([artifact("architect", text)], "spec")
    assert [(part["whole"], part["text"]) for part in pack["parts"]] == [(True, text)]
    assert "(whole: nothing in it matched)" in render_pack(pack)
    assert pack["receipts"][0]["tokens_left_out"] == 0


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
    assert [part["text"] for part in pack["parts"]] == [ARCHITECT, SPEC, "one\n", "two\n"]


# --- feedback -------------------------------------------------------------------------------------------


def test_an_architect_is_told_what_to_fix_and_what_to_preserve() -> None:
    pack = make_pack([artifact("architect", ARCHITECT), artifact("design-audit", AUDIT)], "revision")
    told = {part["kind"]: part["text"] for part in pack["parts"]}
    assert told["full"] == ARCHITECT
    assert "move prices out" in told["fix"]
    assert "baskets are values" in told["preserve"]
    assert "the basket knows prices" in render_pack(pack)
    assert "memory_candidates" not in render_pack(pack)


def test_feedback_in_prose_keeps_every_finding() -> None:
    audit = (
        "## Verdict: IMPLEMENTATION_FLAW\n\n## Issues\n1. [MAJOR] src/a.py:12 opens twice\n\n"
        "## Methodology and references\n\nI read it.\n\n## Background\n\nI read all of it, twice.\n\n"
        "## The second module\n\nIt is empty.\n\n## Preserve\n- the names\n"
    )
    rendered = retrieve("fix", artifact("impl-audit", audit))
    for line in ("Verdict: IMPLEMENTATION_FLAW", "src/a.py:12 opens twice", "It is empty.", "- the names"):
        assert line in rendered
    assert "all of it, twice" not in rendered


def test_feedback_without_headings_is_handed_over_whole() -> None:
    audit = "The login does not check the password.\nEverything else is fine.\n"
    assert audit.strip() in retrieve("fix", artifact("impl-audit", audit))


def test_who_fixes_gets_the_audit_the_code_and_the_tests() -> None:
    tests = "# Tests\n\nSome words.\n\n- `tests/test_basket.py::test_add`\n\n## Run command\n\n```\npytest tests/test_basket.py\n```\n"
    rendered = retrieve(
        "fix", artifact("impl-audit", AUDIT), artifact("implementation", "code\n"), artifact("tests", tests)
    )
    for line in ("section 2", "code", "tests/test_basket.py::test_add", "pytest tests/test_basket.py"):
        assert line in rendered


# --- budget ---------------------------------------------------------------------------------------------


def test_a_budget_drops_the_least_useful_first_and_says_so() -> None:
    """Files go before edge cases, those before types, those before signatures."""
    sizes = []
    for limit in range(30, 130, 10):
        pack = make_pack([artifact("spec", SPEC)], "implementation", (), limit)
        kinds = [part["kind"] for part in pack["parts"]]
        order = ["signatures", "types", "edge-cases", "files"]
        assert set(kinds) == set(order[: len(kinds)])
        assert estimate_tokens(render_pack(pack)) <= limit
        assert "DROPPED for max_tokens" in render_pack(pack) or len(kinds) == 4
        sizes.append(len(kinds))
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (0, 4)


def test_what_was_dropped_is_named_with_its_size() -> None:
    pack = make_pack([artifact("spec", SPEC)], "implementation", (), 65)
    assert render_dropped(pack) == [
        "DROPPED: docs/spec.md › Edge cases [edge-cases] tokens: 7 (budget)",
        "DROPPED: docs/spec.md › Files [files] tokens: 6 (budget)",
    ]
    assert "DROPPED for max_tokens 65: 2 parts, 13 tokens" in render_pack(pack)
    files = "".join(f"- `shop/part_{number}.py` (new)\n" for number in range(30))
    roomy = make_pack([artifact("spec", SPEC + files)], "implementation", (), 200)
    assert "DROPPED for max_tokens 200: Acceptance criteria [files] (" in render_pack(roomy)


def test_of_the_part_at_the_edge_the_beginning_is_kept() -> None:
    cases = "".join(f"- case number {number} is refused\n" for number in range(100))
    pack = make_pack([artifact("spec", f"## Edge cases\n\n{cases}")], "implementation", (), 200)
    [part] = pack["parts"]
    assert part["text"].startswith("- case number 0 ")
    assert [dropped["reason"] for dropped in pack["dropped"]] == ["budget: its end"]
    assert 150 < estimate_tokens(render_pack(pack)) <= 200


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


def test_a_receipt_names_artifact_hash_and_tokens() -> None:
    pack = make_pack([artifact("spec", SPEC)], "implementation")
    [receipt] = pack["receipts"]
    assert receipt["tokens_in"] + receipt["tokens_left_out"] == estimate_tokens(SPEC)
    assert render_receipts(pack) == [
        f"RECEIPT: docs/spec.md sha256:{'spec':0<64} tokens in: {receipt['tokens_in']}, left out: {receipt['tokens_left_out']}"
    ]


def test_what_two_artifacts_both_say_is_said_once() -> None:
    """A part whose every line is in the pack already is left out, and named."""
    pack = make_pack([artifact("spec", SPEC), artifact("implementation", SPEC)], "testing")
    assert {part["artifact"] for part in pack["parts"]} == {"spec"}
    assert {dropped["reason"] for dropped in pack["dropped"]} == {"already in the pack"}
    assert pack["receipts"][1]["tokens_in"] == 0


def test_an_implementation_does_not_repeat_the_interface() -> None:
    """A signature that was given is not given again with the code that implements it."""
    code = "\n## Sketch\n\n```python\ndef add(basket: Basket, item: str) -> Basket:\n    ...\n\ndef total(basket: Basket) -> int:\n    ...\n```\n"
    rendered = retrieve("implementation", artifact("spec", SPEC + code))
    assert rendered.count("def add(") == 1
    assert "def total(" in rendered


def test_an_open_fence_does_not_swallow_the_next_part() -> None:
    text = "## Signatures\n\n```go\nfunc A()\n\n## Edge cases\n\n- an empty one is skipped\n"
    rendered = retrieve("implementation", artifact("spec", text))
    assert "```go\nfunc A()\n```\n## Edge cases\n" in rendered
