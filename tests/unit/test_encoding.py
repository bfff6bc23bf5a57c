"""JSON without the standard library's module: the same text, the same values, and stricter with what others wrote."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto import encoding
from tenuto.encoding import NotJson, dumps, loads, loads_strict, pretty

ROOT = Path(__file__).resolve().parents[2]
any_text = st.text(st.characters(codec=None))  # also halves of characters, which no UTF-8 can hold
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_it_says_what_the_standard_library_says(value: Any) -> None:
    """Whoever reads our files with another program reads the same."""
    assert dumps(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert pretty(value) == json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    assert loads(dumps(value)) == loads_strict(pretty(value)) == value


@given(any_text, any_text)
def test_half_a_character_is_kept_and_can_be_written(key: str, text: str) -> None:
    """An agent that cuts an emoji in two sends JSON that is no text. It is stored, and comes back as it came."""
    value = loads(json.dumps({key: [text]}))
    written = dumps(value).encode()
    assert loads(written) == value
    assert loads_strict(pretty(value).encode()) == value
    assert json.loads(written) == value


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        "-Infinity",
        '{"a": 1, "a": 2}',
        '{"a": {"b": 1, "b": 1}}',
        "[1] 2",
        "",
        " ",
        "{",
        '"a',
        "[1,]",
        "nul",
        "'a'",
        "[" * 65 + "]" * 65,
        "[" * 100_000,
        '{"a":' * 65 + "1" + "}" * 65,
        '"\t"',
        b"\xff",
        b'"\xed\xa0\x80"',
    ],
)
def test_what_others_wrote_is_read_strictly(text: str | bytes) -> None:
    """NaN, a key that stands twice, depth, half a byte: refused with a reason, never guessed."""
    with pytest.raises(NotJson, match=r"\w+"):
        loads_strict(text)


def test_64_deep_is_read_and_a_mark_at_the_beginning_is_passed_over() -> None:
    assert loads_strict("[" * 64 + "]" * 64)
    assert loads_strict(b'\xef\xbb\xbf{"a": 1}\r\n') == {"a": 1}


def test_only_json_can_be_written() -> None:
    for value in (b"bytes", {1, 2}, object(), float("nan"), float("inf")):
        with pytest.raises((TypeError, ValueError)):
            dumps([value])


def test_a_broken_text_is_an_answer_in_a_process_that_never_loaded_json() -> None:
    """The C scanner makes its message with a module that a hook does not load."""
    told = (
        "from tenuto.encoding import NotJson, loads_strict\ntry: loads_strict('{\"a\" 1}')\nexcept NotJson as "
        "error: print(error)"
    )
    answer = subprocess.run([sys.executable, "-S", "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "column" in answer.stdout and not answer.stderr


@pytest.mark.parametrize("faster", [False, True])
def test_a_hash_is_sha_256_however_it_is_made(faster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding.HASHING, "long", encoding.HASHING.long)
    if faster:
        encoding.hash_faster()
    for size in (0, 1, 64, 127, 128, 129, 5000):
        data = bytes(range(256)) * 20
        assert encoding.sha256(data[:size]).hexdigest() == hashlib.sha256(data[:size]).hexdigest()
        assert encoding.digest(data[:size]) == hashlib.sha256(data[:size]).hexdigest()


@pytest.mark.parametrize("before", ["", "import hashlib"])
def test_a_program_that_has_openssl_hashes_with_it_and_nobody_else_loads_it(tmp_path: Path, before: str) -> None:
    """It takes a third of the time per hash, and as much as a whole hook to load."""
    program = f"""
import sys
sys.path.insert(0, sys.argv[1])
{before}
import tenuto
tenuto.open(sys.argv[2])
from tenuto import encoding
print("_hashlib" in sys.modules, encoding.HASHING.long.__module__, encoding.digest(b"x" * 200))
"""
    words = [sys.executable, "-I", "-S", "-c", program, str(ROOT), str(tmp_path)]
    loaded, module, found = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    assert (loaded, module == "_hashlib") == (str(bool(before)), bool(before))
    assert found == hashlib.sha256(b"x" * 200).hexdigest()
