"""Which sentences tell an edge case, wherever they stand."""

from __future__ import annotations

import pytest

from tenuto.knowledge.condense.edges import sentences, tells_an_edge_case

TELLING = [
    "If the list is empty, an empty list is returned.",
    "The parser must handle trailing commas.",
    "Raises ValueError if the cost is negative.",
    "Returns null when no user matches.",
    "A missing file is treated as an empty one.",
    "When the cache is unavailable, requests fall back to the database.",
    "Payloads larger than 1 MB are rejected with 413.",
    "Tokens that have expired are refused.",
    "Unless the lock is held, `release` throws `NotOwner`.",
    "Removing an unknown id is a no-op.",
    "Two writers at the same time must not corrupt the index.",
    "Amounts are never rounded.",
    "On timeout the job is retried twice.",
]
ITEMS = [
    "- null input → default",
    "- duplicate key: the last one wins",
    "- `limit` of 0: nothing is read",
    "- same job twice: the second overwrites the first",
    "- a picture smaller than the size is not enlarged",
    "- 404 on delete: treated as done",
    "- Toggling twice – the check-in is removed",
]
STORIES = [
    "When we sorted the rules, eleven were left and two were missing.",
    "We asked three customers what they would do if the service failed.",
    "The prototype was written in an afternoon and did what it was meant to do.",
    "Search was the most requested feature in the last three surveys.",
    "The team discussed using an external cluster.",
    "Designers have prepared mock-ups, which are attached to the ticket.",
    "On a developer laptop, a prototype answered in under three milliseconds.",
    "The design is deliberately conventional.",
]


@pytest.mark.parametrize("text", TELLING)
def test_a_sentence_that_tells_an_edge_case_is_heard(text: str) -> None:
    assert tells_an_edge_case(text)


@pytest.mark.parametrize("text", ITEMS)
def test_an_item_needs_fewer_words(text: str) -> None:
    assert tells_an_edge_case(text, "item")


@pytest.mark.parametrize("text", STORIES)
def test_a_story_is_not_an_edge_case(text: str) -> None:
    assert not tells_an_edge_case(text)


@pytest.mark.parametrize("text", ["Returns null when no user matches.", "The worker must reject what it cannot parse."])
def test_background_is_believed_when_it_speaks_like_a_specification(text: str) -> None:
    assert tells_an_edge_case(text, "doubtful")


def test_a_sentence_may_begin_and_end_within_a_line() -> None:
    """Lines are kept whole, so a sentence is told with the lines it stands on."""
    found = sentences(["One is here. Two", "goes on; three", "ends."])
    assert found == [(0, 0, "One is here."), (0, 1, "Two goes on"), (1, 2, "three ends.")]
