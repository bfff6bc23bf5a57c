"""Whatever a heading looks like, what stands under it is found."""

from __future__ import annotations

import pytest

from tenuto.knowledge.condense.cuts import condense
from tenuto.knowledge.condense.topics import topics_of

HEADINGS = {
    "atx": "## Edge cases",
    "atx, closed": "## Edge cases ##",
    "atx without a space": "##Edge cases",
    "atx, deep": "####### Edge cases",
    "underlined": "Edge cases\n----------",
    "underlined twice": "Edge cases\n==========",
    "reStructuredText": "Edge cases\n~~~~~~~~~~",
    "bold": "**Edge cases**",
    "underscores": "__Edge cases__",
    "bold label": "**Edge Cases:**",
    "bold label, colon outside": "**Edge Cases**:",
    "plain label": "Edge cases:",
    "capitals": "EDGE CASES",
    "numbered capitals": "3. EDGE CASES",
    "numbered": "### 3.2. Edge cases",
    "lettered": "## C) Edge cases",
    "outline": "3.2 Edge cases\n",
    "html": '<h3 id="edge">Edge cases</h3>',
    "summary": "<details><summary>Edge cases</summary>\n",
    "tag": "<edge_cases>",
    "emoji": "## ⚠️ Edge cases",
    "asciidoc": "=== Edge cases",
    "wiki": "== Edge cases ==",
    "org": "** Edge cases",
    "jira": "h3. Edge cases",
    "banner": "---- Edge cases ----",
    "quoted": "> ## Edge cases",
    "with a link": "## [Edge cases](#edge)",
    "with an anchor": "## Edge cases {#edge}",
    "snake case": "edge_cases:",
    "camel case": "## edgeCases",
    "in a longer title": "## Parser: edge cases and errors",
}

TEXT = """# Feature

Some words about the feature and why it is there.

{heading}

- Grün ist grün

{after}

# Something else

- Blau ist blau
"""


@pytest.mark.parametrize("style", HEADINGS)
def test_a_section_is_found_whatever_its_heading_looks_like(style: str) -> None:
    """The item under the heading is taken for the heading's sake (its own words say nothing); the other is not."""
    after = "</edge_cases>" if style == "tag" else "</details>" if style == "summary" else ""
    found = condense(TEXT.format(heading=HEADINGS[style], after=after), ("edge-cases",))
    assert [piece["by"] for piece in found["pieces"]] == ["heading"]
    assert "Grün ist grün" in found["pieces"][0]["text"]
    assert "Blau ist blau" not in found["pieces"][0]["text"]


@pytest.mark.parametrize(
    ("title", "topic"),
    [
        ("Corner cases", "edge-cases"),
        ("7. Failure modes & recovery", "edge-cases"),
        ("What could go wrong?", "edge-cases"),
        ("Gotchas", "edge-cases"),
        ("Error Handling", "edge-cases"),
        ("Boundary conditions", "edge-cases"),
        ("Key decisions", "decisions"),
        ("ADR", "decisions"),
        ("Proposed solution", "decisions"),
        ("Where things go", "files"),
        ("Files to Create/Modify", "files"),
        ("Directory layout", "files"),
        ("newFiles", "files"),
        ("Non-goals", "constraints"),
        ("Constraints and invariants", "constraints"),
        ("Naming conventions", "patterns"),
        ("Function signatures", "signatures"),
        ("Public API", "signatures"),
        ("Endpoints", "signatures"),
        ("Data model", "types"),
        ("Component Props", "types"),
        ("Database schema", "types"),
        ("Expected behaviour", "behaviors"),
        ("Acceptance Criteria", "checks"),
        ("issues_to_fix", "fix"),
        ("What to preserve", "preserve"),
        ("Positive findings", "preserve"),
        ("Alternatives considered", "discarded"),
        ("Background", "background"),
    ],
)
def test_a_title_means_what_people_mean_by_it(title: str, topic: str) -> None:
    assert topic in topics_of(title)


@pytest.mark.parametrize("title", ["File upload service", "User profile page", "Typed arrays in the worker", "Widgets"])
def test_a_title_that_only_contains_the_word_means_nothing(title: str) -> None:
    """A feature called after files is not about where files go."""
    assert not topics_of(title)


def test_a_label_reaches_as_far_as_its_list() -> None:
    """What follows the list belongs to the section around, not to the label."""
    text = "## Parser\n\n**Edge cases:**\n- Rot\n- Grün\n\nA paragraph about something else entirely.\n"
    [piece] = condense(text, ("edge-cases",))["pieces"]
    assert piece["text"] == "**Edge cases:**\n- Rot\n- Grün"
    assert piece["heading"] == ["Parser"]


def test_code_that_is_never_closed_does_not_swallow_the_document() -> None:
    text = "## Types\n\n```ts\ntype A = 'x' | 'y';\n\n## Edge cases\n\n- Rot\n"
    kinds = [piece["kind"] for piece in condense(text, ("types", "edge-cases"))["pieces"]]
    assert kinds == ["types", "edge-cases"]


def test_an_answer_wrapped_in_a_fence_is_read_like_one_that_is_not() -> None:
    """Models put their whole answer into a Markdown fence; the fences inside are then the code."""
    inner = "## Signatures\n\n```go\nfunc Add(a, b int) int\n```\n\n## Notes\n\nNothing of interest.\n"
    wrapped = condense(f"```markdown\n{inner}```\n", ("signatures",))
    assert [piece["text"] for piece in wrapped["pieces"]] == ["```go\nfunc Add(a, b int) int\n```"]


def test_members_of_a_json_answer_are_headings() -> None:
    text = '{\n  "designDecisions": [\n    "use a queue"\n  ],\n  "summary": "long",\n  "constraints": ["no new tables"]\n}'
    pieces = condense(text, ("decisions", "constraints"))["pieces"]
    assert [(piece["kind"], piece["text"]) for piece in pieces] == [
        ("decisions", '  "designDecisions": [\n    "use a queue"\n  ],'),
        ("constraints", '  "constraints": ["no new tables"]'),
    ]
