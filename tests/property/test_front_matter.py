"""What the quick reader of front matter accepts, a YAML parser accepts as a mapping, too."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.dialects.context.storing import _is_plain, _is_yaml_mapping

PIECES = st.sampled_from(
    [
        "a",
        "b: ",
        "key: value\n",
        "key:\n",
        "  - ",
        "    ",
        "- ",
        "\n",
        ": ",
        "[a, b]",
        "[",
        "]",
        '"text"',
        '"',
        "'",
        "null",
        "true",
        "1.5",
        "2026-01-19",
        "10:30",
        "  - phase: x\n",
        "    more: y\n",
        "list: [a, b-c, d_e]\n",
        "empty: []\n",
        "#",
        " # c",
        "x y",
        "-",
        "?",
        "%",
        "@",
        "&a",
        "*a",
        "!t",
        "|",
        ">",
        "{",
        "}",
        ",",
        "\t",
        "\x07",
        "\x85",
        "\u2028",
        "é",
        "~",
        "...",
        "---",
        "k: -\n",
        "k: =\n",
        "on: off\n",
        "<<: x\n",
        "\\",
        "\r",
        "\ufeff",
    ]
)


@given(st.lists(PIECES, min_size=1, max_size=9))
@settings(max_examples=settings().max_examples * 8)
def test_the_quick_reader_accepts_nothing_that_is_no_yaml(pieces: list[str]) -> None:
    text = "".join(pieces)
    if _is_plain(text):
        assert _is_yaml_mapping(text), text


@pytest.mark.parametrize(
    "text", ["a: b\n\t", "\t\na: b\n", "a:\n    b: c\n  - d\n", "a:\n  - b\n    c: d\n", "a: b\n  - c\n", "- a: b\n"]
)
def test_what_only_looks_like_it_is_left_to_the_parser(text: str) -> None:
    assert not _is_plain(text)


def test_the_quick_reader_knows_what_people_write() -> None:
    assert _is_plain(
        "skipped_phases: [design-audit, spec-writer]\nknown_issues:\n"
        '  - phase: "implementation"\n    description: "Sorting not implemented"\ncreated_at: '
        '"2026-01-19T10:00:00Z"\ngraduated_at: null\n'
    )
