"""What a search finds, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenuto.stores.sqlite import SqliteJournal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Any]:
    made = SqliteJournal(str(tmp_path))
    yield made
    made.close()


def index(journal: Any, *passages: tuple[str, str]) -> None:
    with journal.write() as tx:
        tx.index("run", f"source-{passages[0]}", "a.md", passages)


def headings(journal: Any, words: str, limit: int = 10) -> list[str]:
    with journal.read() as reader:
        return [passage["heading"] for passage in reader.search(words, limit)]


def test_the_best_match_comes_first_whatever_was_stored_first(journal: Any) -> None:
    """More of the word, in less text, or in the heading."""
    long = "other words about other things " * 40
    for number in range(20):
        index(journal, (f"far {number}", f"token {long}"))
    index(journal, ("near", "token token token"))
    index(journal, ("Token", "something short"))
    assert headings(journal, "token", 2) == ["Token", "near"]


def test_all_words_before_any_word(journal: Any) -> None:
    index(journal, ("both", "the cache keeps tokens for a long while in memory, as designed, for all of us"))
    index(journal, ("one", "cache cache cache"))
    assert headings(journal, "cache tokens") == ["both", "one"]


def test_words_are_compared_by_their_stem_and_without_accents(journal: Any) -> None:
    index(journal, ("a", "Entries are sorted in the café"))
    assert headings(journal, "sorting") == ["a"]
    assert headings(journal, "cafe") == ["a"]


def test_the_beginning_of_a_name_finds_the_name(journal: Any) -> None:
    index(journal, ("a", "class MetricsService with a rate_limiter"))
    assert headings(journal, "metrics") == ["a"]
    assert headings(journal, "rate_limiter") == ["a"]
    assert headings(journal, "limiter") == ["a"]


def test_a_question_is_searched_by_its_telling_words(journal: Any) -> None:
    index(journal, ("filler", "how do we do that when it is what we want to do"))
    index(journal, ("answer", "Refresh tokens rotate daily"))
    assert headings(journal, "How do we rotate the refresh tokens?", 1) == ["answer"]


def test_only_common_words_are_searched_as_they_are(journal: Any) -> None:
    index(journal, ("a", "to be or not to be"))
    assert headings(journal, "to be or not") == ["a"]


def test_a_word_that_is_everywhere_brings_the_newest(journal: Any) -> None:
    with journal.write() as tx:
        for number in range(2100):
            tx.index("run", f"s{number}", "a.md", [(f"h{number}", "everywhere")])
    assert headings(journal, "everywhere", 2) == ["h2099", "h2098"]
    index(journal, ("rare", "everywhere and once: zebra"))
    assert headings(journal, "everywhere zebra", 3)[0] == "rare"


@pytest.mark.parametrize(
    "words", ["", "   ", "???", '"', "a AND OR NOT (", "x*", "NEAR(a b)", "-x", "col:x", "\0", "'; DROP TABLE passage"]
)
def test_nothing_anybody_writes_is_taken_for_query_syntax(journal: Any, words: str) -> None:
    index(journal, ("a", "some text"))
    assert isinstance(headings(journal, words), list)
