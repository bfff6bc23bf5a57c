"""Settings of other programs: what setup put in, undo takes out, and every byte of everybody else's stays.

Texts are written with the white space, comments and line ends that people's editors leave behind, and with
hooks and servers of other tools in every place where ours go.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenuto.errors import BadInput
from tenuto.hooks import settings_text
from tenuto.hooks.setup import EVENTS, HOSTS, MARK, Launch, Places, entries, files, launch_of, set_up, undo

LAUNCH = Launch("/opt venv/bin/python", "/opt venv/lib/tenuto/entrypoints/hook.py")
NEWER = Launch("/usr/bin/python3", "/usr/lib/tenuto/entrypoints/hook.py")
PLACES = Places("/home/user", "/home/user/project", {})
FILES = [file for host in HOSTS for scope in ("user", "project") for file in files(host, scope, PLACES)]
JSON = [file for file in FILES if file.kind != "block"]
TOML = [file for file in FILES if file.kind == "block"]

BLANKS = ["", " ", "\n", "\r\n", "\t", "\n  ", "\r\n    ", " \n", "\n\n\t", "\r", "  "]
NOTES = ["// a note\n", ' // two, "quoted" and { open\r\n  ', "/* a\nb */", "//\n", " /**/ ", "/* , */\n  "]
words = st.text(st.characters(codec="utf-8"), max_size=6)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words
values = st.recursive(leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(words, v, max_size=3), max_leaves=6)
others = st.fixed_dictionaries(
    {},
    optional={
        "matcher": words,
        "hooks": st.lists(st.fixed_dictionaries({"type": st.just("command"), "command": words}), max_size=2),
        "bash": words,
    },
)


@st.composite
def documents(draw: st.DrawFn, host: str) -> dict[str, Any]:
    whole = draw(st.dictionaries(words, values, max_size=2))
    if draw(st.booleans()):
        events = st.sampled_from([*EVENTS[host], "Notification"])
        whole["hooks"] = draw(st.dictionaries(events, st.lists(others | values, max_size=2), max_size=3))
    if draw(st.booleans()):
        whole["mcpServers"] = draw(st.dictionaries(words | st.just("tenuto"), values, max_size=2))
    if draw(st.booleans()):
        whole["version"] = 1
    return {key: whole[key] for key in draw(st.permutations(sorted(whole)))}


@st.composite
def texts(draw: st.DrawFn, host: str, comments: bool) -> str:
    gaps = st.sampled_from(BLANKS + (NOTES if comments else []))
    ascii_only = draw(st.booleans())

    def told(value: Any) -> str:
        if isinstance(value, dict):
            pairs = [f"{gap()}{told(key)}{gap()}:{gap()}{told(item)}{gap()}" for key, item in value.items()]
            return "{" + (",".join(pairs) or gap()) + "}"
        if isinstance(value, list):
            return "[" + (",".join(f"{gap()}{told(item)}{gap()}" for item in value) or gap()) + "]"
        return json.dumps(value, ensure_ascii=ascii_only)

    def gap() -> str:
        return draw(gaps)

    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    return mark + gap() + told(draw(documents(host))) + gap()


def ours(text: str) -> bool:
    return MARK in text or "TENUTO_SETUP" in text


@pytest.mark.parametrize("file", JSON, ids=lambda file: file.path.rpartition("user/")[2])
@settings(max_examples=60)
@given(data=st.data())
def test_undone_it_is_as_it_was(file: Any, data: st.DataObject) -> None:
    """To the byte; done twice it is as done once; and what was there before still means the same while it is in."""
    text = data.draw(texts(file.host, file.comments))
    assume(not ours(text))
    before: Any = settings_text.plain(settings_text.read(text, file.comments))
    done = set_up(text, file, LAUNCH)
    assert undo(done, file) == text
    assert set_up(done, file, LAUNCH) == done
    assert undo(set_up(done, file, NEWER), file) == text, "another Tenuto's entries are replaced, not added to"
    assert undo(text, file) == text, "nothing of ours, nothing to undo"
    after: Any = settings_text.plain(settings_text.read(done, file.comments))
    assert without(after) == without(before)


def without(whole: dict[str, Any]) -> Any:
    """What others wrote, without places that hold nothing."""
    hooks = {
        event: kept
        for event, groups in whole.get("hooks", {}).items()
        if (kept := [group for group in groups if MARK not in json.dumps(group)])
    }
    servers = {key: told for key, told in whole.get("mcpServers", {}).items() if "TENUTO_SETUP" not in json.dumps(told)}
    return {**whole, "hooks": hooks, "mcpServers": servers}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.rpartition("user/")[2])
def test_a_file_that_was_not_there_is_gone_again(file: Any) -> None:
    done = set_up(None, file, LAUNCH)
    assert undo(done, file) is None
    assert set_up(done, file, LAUNCH) == done
    if file.kind in ("hooks", "both"):
        assert [launch_of(command) for command in entries(done, file)] == [LAUNCH] * len(EVENTS[file.host])


@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from(["a = 1\n", "\n", "# note\n", "[mcp_servers.other]\n", "x = '''\n'''\r\n", "b = 2", "[t]\n"]),
        max_size=5,
    )
)
def test_a_block_of_toml_is_undone_to_the_byte(lines: list[str]) -> None:
    text = "".join(lines)
    try:
        done = set_up(text, TOML[0], LAUNCH)
    except BadInput:
        return  # not TOML, or what is there leaves no room
    assert undo(done, TOML[0]) == text
    assert set_up(done, TOML[0], NEWER) == set_up(text, TOML[0], NEWER)
    assert undo(done + "late = 3\n", TOML[0]) == text + "late = 3\n" or not text.endswith("\n")


@settings(max_examples=200)
@given(st.text(st.sampled_from('{}[]",:/*\\ \n1tnul'), max_size=12))
def test_what_is_no_json_is_refused(text: str) -> None:
    """Exactly that: what json reads is read, with the same meaning; what it does not read is refused by name."""
    try:
        meant = json.loads(text)
    except ValueError:
        with pytest.raises(BadInput, match="line "):
            settings_text.read(text)
    else:
        assert settings_text.plain(settings_text.read(text)) == meant


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "not-json"),
        ("{} {}", "not-json"),
        ('{"a": 1,}', "not-json"),
        ('{"a": NaN}', "not-json"),
        ("[" * 5000, "not-json"),
        ("[]", "bad-shape"),
        ('{"hooks": []}', "bad-shape"),
        ('{"hooks": {"Stop": {}}}', "bad-shape"),
        ("// a\n{}", "not-json"),
        ('{"hooks": {}, "hooks": {}}', "twice"),
        ('{"hooks": {"Stop": [], "Stop": []}}', "twice"),
    ],
)
def test_a_file_of_another_shape_is_refused(text: str, code: str) -> None:
    with pytest.raises(BadInput) as caught:
        set_up(text, FILES[0], LAUNCH)
    assert caught.value.code == code


def test_hooks_that_a_user_put_beside_ours_stay() -> None:
    """In our group, after it, in an event that we made: theirs stays, and the rest of ours goes."""
    file = FILES[0]
    whole = json.loads(set_up(None, file, LAUNCH))
    mine = {"type": "command", "command": "mine"}
    whole["hooks"]["Stop"][0]["hooks"].insert(0, mine)
    whole["hooks"]["PreToolUse"].append({"matcher": "Bash", "hooks": [mine]})
    rest = undo(json.dumps(whole), file)
    assert rest is not None
    assert json.loads(rest) == {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [mine]}], "Stop": [{"hooks": [mine]}]}
    }


def test_a_server_of_the_same_name_is_not_ours() -> None:
    file = next(file for file in FILES if file.host == "gemini")
    text = '{"mcpServers": {"tenuto": {"command": "other"}}}'
    done = set_up(text, file, LAUNCH)
    assert json.loads(done)["mcpServers"] == {"tenuto": {"command": "other"}}
    assert undo(done, file) == text


def test_a_comment_stays_with_what_it_is_about() -> None:
    file = next(file for file in FILES if file.comments)
    assert set_up('{\n  "a": 1 // one\n}\n', file, LAUNCH).startswith('{\n  "a": 1, // one\n  "hooks": {\n')
