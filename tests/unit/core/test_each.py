"""`each`: what an author may write, which keys elements have, and how many of them a plan counts."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.budget import fewest, worst_case
from tenuto.core.items import PlanRefused
from tenuto.core.pipeline.check import check
from tenuto.core.pipeline.each import MOST, in_words, items_of, key_from

FACTS: Any = {"switches": {}, "params": {}, "outcomes": {}, "files": {}}


PART = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}, "needs": {"type": "array"}},
}
FOUND = {
    "type": "object",
    "properties": {
        "total": {"type": "integer"},
        "words": {"type": "array", "items": {"type": "string"}},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
        "open": {"type": "array", "items": {**PART, "additionalProperties": True}},
        "mixed": {"type": "array", "items": {"anyOf": [{"type": "string"}, PART]}},
        "any": {"type": "array"},
        "untyped": {},
    },
    "$defs": {"part": PART},
}
FIND = {"id": "find", "agent": {"role": "w", "result": {"schema": {}}}}


def pipeline(each: Any, **more: Any) -> dict[str, Any]:
    body = more or {"command": ["true"]}
    params = {"langs": {"type": "list", "default": ["de", "fr", "it"]}, "depth": 2}
    return {"name": "trial", "params": params, "steps": [FIND, {"id": "work", "each": each, **body}]}


def step(each: Any, **more: Any) -> Any:
    checked, problems = check(pipeline(each, **more))
    assert checked is not None and problems == []
    return checked["steps"][1]


@pytest.mark.parametrize(
    ("each", "more", "place", "code", "words"),
    [
        ("langs", {}, ["each"], "wrong-type", "each must be a mapping, not the text 'langs'"),
        ({}, {}, ["each"], "one-source", "does not say where its list comes from"),
        ({"param": "langs", "files": "*"}, {}, ["each"], "one-source", "names param and files"),
        ({"param": "lang"}, {}, ["each", "param"], "unknown-parameter", "did you mean 'langs'?"),
        ({"param": "depth"}, {}, ["each", "param"], "wrong-type", "is a number, not a list"),
        ({"result": "fnd"}, {}, ["each", "result"], "unknown-step", "did you mean 'find'?"),
        ({"parm": "langs"}, {}, ["each", "parm"], "unknown-key", "did you mean 'param'?"),
        ({"param": "langs", "field": "x"}, {}, ["each", "field"], "contradiction", "leave it out"),
        ({"param": "langs", "key": "vlaue"}, {}, ["each", "key"], "unknown-field", "did you mean 'value'?"),
        ({"files": "/etc/*"}, {}, ["each", "files"], "bad-path", "it is absolute"),
        ({"files": "../*"}, {}, ["each", "files"], "bad-path", "cannot be used"),
        ({"lines": []}, {}, ["each", "command", "run"], "wrong-type", "a command is a list"),
        ({"param": "langs", "max": MOST + 1}, {}, ["each", "max"], "out-of-range", "from 1 to 10000"),
        ({"param": "langs", "cap": 0}, {}, ["each", "cap"], "out-of-range", "from 1 to 1000"),
        ({"param": "langs", "quorum": "most"}, {}, ["each", "quorum"], "wrong-value", "a share like 80%"),
        ({"param": "langs", "on_error": "stopp"}, {}, ["each", "on_error"], "unknown-value", "did you mean 'stop'?"),
        ({"param": "langs", "order": "roling"}, {}, ["each", "order"], "unknown-value", "did you mean 'rolling'?"),
        (
            {"param": "langs", "when": {"element": "x", "is": 1}},
            {},
            ["each", "when", "element"],
            "unknown-field",
            "value",
        ),
        ({"param": "langs"}, {"agent": {"role": "w", "out": "a.md"}}, ["agent"], "shared-output", "a-{item}.md"),
        ({"param": "langs"}, {"command": ["echo", "{each.valu}"]}, [], "unknown-field", "did you mean 'value'?"),
        ({"param": "langs"}, {"agent": "w", "modes": {}}, ["modes"], "unknown-key", "has no key 'modes'"),
        ({"lines": ["ls"]}, {"agent": {"role": "w", "id": "list"}}, ["each"], "duplicate", "'list'"),
        ({"param": "langs"}, {"gate": {}}, ["each"], "unknown-key", "a step with gate has no key 'each'"),
        ({"result": "work"}, {}, ["each", "result"], "too-early", "'work' never runs before 'work'"),
        ({"table": "t.md"}, {}, [], "unknown-input", "reads 't.md', which nothing writes"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_a_way_out(
    each: Any, more: Any, place: list[Any], code: str, words: str
) -> None:
    checked, problems = check(pipeline(each, **more))
    assert checked is None
    found = [one for one in problems if one["code"] == code]
    assert found and found[0]["path"] == ["steps", 1, *place]
    assert words in f"{found[0]['message']} {found[0]['hint']}"


def test_fields_of_elements_have_no_meaning_elsewhere() -> None:
    _, problems = check({"name": "trial", "steps": [{"id": "a", "command": ["echo", "{each.value}"]}]})
    assert [one["code"] for one in problems] == ["bad-place"]
    _, problems = check({"name": "trial", "steps": [{"id": "a", "agent": "w", "when": {"element": "x", "is": 1}}]})
    assert [(one["code"], one["path"]) for one in problems] == [("bad-place", ["steps", 0, "when", "element"])]


def test_names_that_leave_no_room_for_a_key_are_refused() -> None:
    raw = {"id": "x" * 63, "each": {"files": "*"}, "agent": {"role": "w", "id": "y" * 5}}
    _, problems = check({"name": "trial", "steps": [raw]})
    assert [(one["code"], one["path"]) for one in problems] == [("bad-id", ["steps", 0, "id"])]


# ---- of a result whose schema is known -------------------------------------------------------------


def of_result(each: Any, *command: str) -> tuple[Any, list[Any]]:
    find = {**FIND, "agent": {"role": "w", "result": {"schema": FOUND}}}
    work = {"id": "work", "each": {"result": "find", **each}, "command": ["echo", *command]}
    return check({"name": "trial", "steps": [find, work]})


@pytest.mark.parametrize(
    ("each", "place", "code", "words"),
    [
        ({"field": "totl"}, ["field"], "unknown-field", "did you mean 'total'?"),
        ({"field": "total"}, ["field"], "wrong-type", "'total' is an integer, and no list"),
        ({}, ["field"], "wrong-type", "'find' is an object, and no list"),
        ({"field": "words", "key": "id"}, ["key"], "unknown-field", "known: value"),
        ({"field": "parts", "key": "nam"}, ["key"], "unknown-field", "did you mean 'name'?"),
        ({"field": "parts", "depends_on": "x"}, ["depends_on"], "unknown-field", "known: name, needs, size"),
        ({"field": "parts", "files_of": "x"}, ["files_of"], "unknown-field", "known: name, needs, size"),
        (
            {"field": "parts", "when": {"not": {"any": [{"element": "size", "is": 1}, {"element": "siz", "is": 1}]}}},
            ["when", "not", "any", 1],
            "unknown-field",
            "did you mean 'size'?",
        ),
    ],
)
def test_a_list_in_a_result_is_looked_up_in_its_schema(each: Any, place: list[Any], code: str, words: str) -> None:
    checked, (problem,) = of_result(each)
    assert checked is None
    assert (problem["code"], problem["path"]) == (code, ["steps", 1, "each", *place])
    assert words in f"{problem['message']} {problem['hint']}"


def test_conditions_of_elements_may_ask_about_other_things() -> None:
    when = {"all": ["element-wise", {"exists": "x.md"}, {"element": "size", "is": 1}]}
    find = {**FIND, "agent": {"role": "w", "result": {"schema": FOUND}}}
    work = {"id": "work", "each": {"result": "find", "field": "parts", "when": when}, "command": ["true"]}
    assert check({"name": "trial", "switches": {"element-wise": False}, "steps": [find, work]})[1] == []


def test_a_command_names_fields_that_the_schema_has() -> None:
    assert of_result({"field": "parts"}, "{each.name}", "{each.needs}")[1] == []
    assert of_result({"field": "words"}, "{each.value}")[1] == []
    _, (problem,) = of_result({"field": "parts"}, "{each.value}")
    assert (problem["code"], problem["hint"]) == ("unknown-field", "known: name, needs, size")


@pytest.mark.parametrize("field", ["open", "mixed", "any", "untyped", "untyped.below"])
def test_what_a_schema_leaves_open_only_the_run_will_show(field: str) -> None:
    assert of_result({"field": field, "key": "whatever"}, "{each.else}")[1] == []


@pytest.mark.parametrize("word", ["{item}", "{number}"])
def test_a_step_without_items_writes_nothing_for_an_item(word: str) -> None:
    path = f"a-{word}.md"
    for step in ({"agent": {"role": "w", "out": path}}, {"command": {"run": ["true"], "stdout": path}}):
        _, problems = check({"name": "trial", "steps": [{"id": "a", **step}]})
        assert [(one["code"], one["message"]) for one in problems] == [
            ("bad-place", f"'{path}' names an item, and the step has none")
        ]


@pytest.mark.parametrize(
    "raw",
    [
        (
            {"param": "langs", "quorum": "80%", "cap": 2, "on_error": "stop"},
            {"agent": {"role": "w", "out": "{item}.md"}},
        ),
        ({"lines": {"run": ["ls"], "env": {"A": "1"}}, "max": 5}, {"command": ["echo", "{each.value}"]}),
        ({"files": "*.py"}, {"cluster": ["a", "b"], "aggregate": {"role": "c", "rule": "v"}}),
        ({"files": "*.py"}, {"cluster": {"first": "f", "members": ["a"]}}),
        ({"result": "find", "field": "a.b", "key": "id", "depends_on": "needs"}, {"command": ["true"]}),
    ],
)
def test_a_checked_one_is_checked_again_to_the_same(raw: Any) -> None:
    checked, _ = check(pipeline(raw[0], **raw[1]))
    assert checked is not None and check(checked) == (checked, [])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("src/a.py", "src-a.py"),
        ("../../etc/passwd", "etc-passwd"),
        ("  Größe 5! ", "Größe-5"),
        ("-rf", "rf"),
        ("a\u0301", "á"),
        ("a\u202eb\nc", "a-b-c"),
        ("...", ""),
    ],
)
def test_a_key_made_from_a_text_is_a_name(text: str, key: str) -> None:
    made, problem = key_from(text)
    assert made == key and bool(problem) == (not key)


def test_long_texts_that_begin_alike_have_two_keys() -> None:
    one, two = key_from("x" * 300 + "1")[0], key_from("x" * 300 + "2")[0]
    assert one != two and max(len(one), len(two)) <= 80


def refused(each: Any, elements: list[Any], **more: Any) -> str:
    with pytest.raises(PlanRefused) as refusal:
        items_of(step(each, **more), elements, FACTS)
    return refusal.value.message


@pytest.mark.parametrize(
    ("each", "elements", "words"),
    [
        ({"param": "langs"}, ["a b", "a-b"], "elements 1 ('a b') and 2 ('a-b') have the same key 'a-b'; name a field"),
        ({"param": "langs"}, ["A", "a"], "have the same key"),
        ({"param": "langs"}, ["ok", "///"], "element 2 ('///'): '///' has no letter or digit"),
        ({"param": "langs"}, ["ok", "con"], "element 2 ('con'): the key 'con' cannot be used: some systems reserve it"),
        ({"param": "langs"}, ["ok", ["x"]], "element 2 is a list, not text"),
        ({"param": "langs"}, ["ok", "a\0b"], "element 2: its value holds a NUL"),
        ({"param": "langs"}, ["x" * 5000], "element 1: its value is longer than 4096 characters"),
        ({"param": "langs", "key": "value"}, ["a/b"], "the key 'a/b' cannot be used: it holds the character U+002F"),
        ({"param": "langs", "key": "value"}, ["a b"], "it holds the character U+0020"),
        ({"param": "langs", "key": "value"}, [".git"], "its dots are not where a name may have some"),
        ({"param": "langs", "key": "value"}, ["x" * 81], "is longer than 80 bytes"),
        ({"param": "langs", "max": 2}, ["a", "b", "c"], "the list has 3 elements; at most 2 are allowed"),
        ({"result": "find", "key": "id"}, [{"name": "x"}], "it has no field 'id', which is the key"),
        (
            {"result": "find", "key": "id", "depends_on": "n"},
            [{"id": "a", "n": ["b"]}, {"id": "b", "n": "a"}],
            "a -> b",
        ),
        ({"result": "find", "key": "id", "depends_on": "n"}, [{"id": "a", "n": "c"}, {"id": "b"}], "depends on 'c'"),
    ],
)
def test_a_wrong_element_is_named_with_its_position(each: Any, elements: list[Any], words: str) -> None:
    assert words in refused(each, elements)


def test_a_field_that_the_command_uses_must_be_there() -> None:
    message = refused({"result": "find"}, [{"id": "a", "size": 3}, {"id": "b"}], command=["echo", "{each.size}"])
    assert message == "element 2 (b) has no field 'size', which the step uses; known: id"


def test_elements_for_which_the_condition_does_not_hold_are_left_out_and_nobody_waits_for_them() -> None:
    each = {"result": "find", "key": "id", "depends_on": "n", "when": {"element": "open", "is": True}}
    elements = [{"id": "a", "open": False}, {"id": "b", "open": True, "n": ["a"]}, {"id": "c"}]
    found = items_of(step(each), elements, FACTS)
    assert [(item["id"], item["depends_on"]) for item in found["items"]] == [("work.b", [])]
    assert found["notes"] == ["2 of 3 elements are left out (a, c): this does not hold: open is true"]


@pytest.mark.parametrize("number", [0, 1, 1000])
def test_lists_of_any_length_up_to_the_bound(number: int) -> None:
    each = {"param": "langs", "max": 1000}
    items = items_of(step(each), [f"e{n}" for n in range(number)], FACTS)["items"]
    assert [item["id"] for item in items] == [f"work.e{n}" for n in range(number)]


@pytest.mark.parametrize(
    ("each", "params", "attempts"),
    [
        ({"param": "langs", "max": 7}, None, 7 * 2),
        ({"param": "langs", "max": 7}, {"langs": ["a", "b"]}, 2 * 2),
        ({"param": "langs", "max": 7}, {"langs": ["a"] * 9}, 7 * 2),
        ({"lines": ["ls"], "max": 7}, {"langs": ["a"]}, 8 * 2),
        ({"files": "*"}, None, 100 * 2),
    ],
)
def test_the_worst_case_counts_every_element_that_there_can_be_and_who_prints_them(
    each: Any, params: Any, attempts: int
) -> None:
    checked, _ = check(pipeline(each, command=["true"], retry={"ERROR": 1}))
    assert checked is not None
    assert worst_case(checked, 5, params=params)["attempts"] == 1 + attempts
    assert fewest(checked, 5) == 1 + 5 + ("lines" in each)


def test_when_all_goes_well_everybody_on_the_way_works_once() -> None:
    """What is aside or switched off does not; a cluster's empty places are nobody's; an element takes all its seats."""
    steps = [
        {"id": "one", "agent": {"role": "w", "retry": {"ERROR": 2}}},
        {"id": "three", "cluster": {"first": "f", "members": ["a", "b"]}},
        {"id": "four", "cluster": ["a", "b", "c"], "aggregate": "d"},
        {"id": "off", "when": "no", "agent": "w"},
        {"id": "on", "when": "yes", "agent": "w", "on": {"ERROR": {"route": ["beside"], "at_most": 1}}},
        {"id": "beside", "aside": True, "agent": "w"},
        {"id": "ask", "gate": {}},
        {"id": "turns", "each": {"files": "*", "max": 3}, "in_turn": ["a", {"command": ["true"]}]},
        {"id": "printed", "each": {"lines": ["ls"], "max": 3}, "command": ["true"]},
        {"id": "planned", "waves": {"plan": "plan.md", "roles": ["a", "b"]}},
    ]
    raw = {"name": "trial", "switches": {"no": False, "yes": True}, "existing": ["plan.md"], "steps": steps}
    checked, problems = check(raw)
    assert checked is not None and problems == []
    assert fewest(checked, 5) == 1 + 3 + 4 + 1 + 3 * 2 + (1 + 3) + 5


@pytest.mark.parametrize(
    ("each", "words"),
    [
        ({"param": "langs"}, "each of the parameter langs"),
        ({"result": "find", "field": "a.b"}, "each of a.b in the result of find"),
        ({"result": "find"}, "each of the list in the result of find"),
        ({"files": "src/*"}, "each file src/*"),
        ({"table": "modules.md"}, "each row of modules.md"),
        ({"lines": ["git", "ls-files"]}, "each line of git ls-files"),
        ({"lines": "modules.txt"}, "each line of modules.txt"),
    ],
)
def test_where_a_list_comes_from_in_words(each: Any, words: str) -> None:
    raw = {**pipeline(each), "existing": ["modules.md", "modules.txt"]}
    checked, problems = check(raw)
    assert checked is not None and problems == []
    assert in_words(checked["steps"][1]["waves"]["each"]) == words  # type: ignore[typeddict-item, arg-type]


def problem_of(each: Any, **more: Any) -> tuple[list[Any], str, str]:
    _, (problem,) = check(pipeline(each, **more))
    return list(problem["path"][2:]), problem["message"], problem["hint"]


def test_what_a_list_is_made_of_is_known() -> None:
    said = ["each", "param"], "the parameter 'depth' is a number, not a list"
    assert problem_of({"param": "depth"}) == (*said, "lists: langs")
    bare = {"name": "trial", "params": {"depth": 2}, "steps": [{"id": "a", "each": {"param": "depth"}, "agent": "w"}]}
    _, (problem,) = check(bare)
    assert (problem["message"], problem["hint"]) == (said[1], "params: {depth: list}")
    assert problem_of({"result": "fnd/w"})[1:] == ("there is no step 'fnd/w'", "known: find, work")
    assert check(pipeline({"result": "find/w"}))[1] == []
    assert problem_of({"files": "*", "field": "x"})[1] == "only a result and a table have a `field`"
    assert check({**pipeline({"table": "t.csv", "field": "Name"}), "existing": ["t.csv"]})[1] == []


@pytest.mark.parametrize(
    "seat",
    [
        {"agent": {"role": "w", "task": "about {each.valu}"}},
        {"command": {"run": ["echo"], "env": {"A": "{each.valu}"}}},
        {"command": ["echo", "a {each.valu} b"]},
    ],
)
def test_fields_may_stand_where_values_are_handed_over(seat: Any) -> None:
    assert problem_of({"param": "langs"}, **seat)[1:] == ("an element has no field 'valu'", "did you mean 'value'?")


def test_a_mark_that_is_not_closed_is_text() -> None:
    assert check(pipeline({"param": "langs"}, command=["echo", "{each.", "{each.valu"]))[1] == []


@pytest.mark.parametrize(
    ("path", "better"),
    [
        ("a.md", "a-{item}.md"),
        ("notes", "notes-{item}"),
        ("a.b/notes", "a.b/notes-{item}"),
        ("a/b.md", "a/b-{item}.md"),
    ],
)
def test_files_of_one_s_own_are_proposed(path: str, better: str) -> None:
    found = problem_of({"param": "langs"}, agent={"role": "w", "out": path})
    assert found == (["agent"], f"every element would write '{path}'", f"for example {better}")


def test_a_file_that_is_only_added_to_may_be_everybody_s() -> None:
    seat = {"role": "w", "optional": "log.md", "append_only": "log.md"}
    assert check(pipeline({"param": "langs"}, agent=seat))[1] == []


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (["a"], "element 1 is a list, not text or a mapping of fields"),
        (None, "element 1 is nothing, not text or a mapping of fields"),
        ("x" * 4097, "element 1: its value is longer than 4096 characters"),
        ({"id": "a", "note": "y" * 4097}, "element 1: its note is longer than 4096 characters"),
        ("a\0b", "element 1: its value holds a NUL"),
        ("a\ud800", "element 1: its value is not text"),
        ({}, "element 1 has no field with a value"),
        ({"id": None}, "element 1 has no field with a value"),
        ("\udfffa", "element 1: its value is not text"),
    ],
)
def test_what_is_no_element_is_refused(element: object, words: str) -> None:
    assert words in refused({"result": "find"}, [element])


def test_what_is_just_an_element_is_one() -> None:
    """As long as it may be, beside signs that are no text, without what is nothing, and with numbers and lists."""
    each = {"result": "find", "key": "id"}
    elements = [{"id": "a", "note": "y" * 4096, "none": None}, {"id": 7, "other": "\ud7ff\ue000", "several": [1, "b"]}]
    items = items_of(step(each), elements, FACTS)["items"]
    assert [item["id"] for item in items] == ["work.a", "work.7"]
    assert items[1]["description"] == "id: 7\nother: \ud7ff\ue000\nseveral: 1, b"
    assert "none" not in items[0]["description"]


def test_what_an_element_has_besides_text_is_handed_on_as_json() -> None:
    element = {"id": "a", "inner": {"b": [1]}, "rows": [{"c": 1}, 2], "empty": [], "yes": True}
    (item,) = items_of(step({"result": "find", "key": "id"}), [element], FACTS)["items"]
    assert item["description"].splitlines() == [
        "id: a",
        'inner: {"b":[1]}',
        'rows: [{"c":1},2]',
        "empty: ",
        "yes: true",
    ]


def test_an_element_without_a_field_that_names_it_is_called_by_its_first() -> None:
    assert [item["id"] for item in items_of(step({"result": "find"}), [{"size": 3}], FACTS)["items"]] == ["work.3"]


def test_two_elements_without_fields_are_two_mistakes_and_no_more() -> None:
    assert refused({"result": "find"}, [{}, []]) == (
        "element 1 has no field with a value; element 2 is a list, not text or a mapping of fields"
    )


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("con", "some systems reserve it"),
        ("a..b", "its dots are not where a name may have some"),
        ("x" * 81, "is longer than 80 bytes"),
    ],
)
def test_a_key_is_a_name(key: str, problem: str) -> None:
    assert problem in refused({"result": "find", "key": "id"}, [{"id": key}])


@pytest.mark.parametrize("key", ["a.b", "x" * 80, "ä_1"])
def test_what_is_a_name_is_taken_as_it_is(key: str) -> None:
    (item,) = items_of(step({"result": "find", "key": "id"}), [{"id": key}], FACTS)["items"]
    assert item["id"] == f"work.{key}"


def test_a_mistake_in_a_step_s_name_is_said_with_all_others() -> None:
    _, problems = check(pipeline({"result": "fnd", "max": 0}))
    assert [one["code"] for one in problems] == ["unknown-step", "out-of-range"]


def test_a_list_holds_what_its_author_wrote_and_nothing_else() -> None:
    assert step({"files": "*.py", "max": 3})["waves"]["each"] == {
        "param": "",
        "result": "",
        "field": "",
        "lines": "",
        "seat": None,
        "files": "*.py",
        "table": "",
        "key": "",
        "depends_on": "",
        "files_of": "",
        "when": "always",
        "max": 3,
    }


def test_all_that_is_wrong_is_counted_and_five_are_told() -> None:
    message = refused({"result": "find", "key": "id"}, [{"name": str(n)} for n in range(7)])
    assert message.count("has no field 'id'") == 5 and message.endswith("; and 2 more")
    assert "more" not in refused({"result": "find", "key": "id"}, [{"name": str(n)} for n in range(5)])


def test_a_step_of_a_plan_has_no_list() -> None:
    planned = {"id": "work", "waves": {"plan": "plan.md", "roles": ["a"]}}
    checked, _ = check({"name": "trial", "existing": ["plan.md"], "steps": [planned]})
    assert checked is not None
    with pytest.raises(ValueError, match="work has no list"):
        items_of(checked["steps"][0], [], FACTS)  # type: ignore[arg-type]


def items(each: Any, elements: list[Any], **more: Any) -> list[Any]:
    return items_of(step(each, **more), elements, FACTS)["items"]


def test_an_element_waits_for_those_that_it_names_however_they_are_written() -> None:
    each = {"result": "find", "key": "id", "depends_on": "n"}
    elements = [
        {"id": "src-a.py"},
        {"id": "B", "n": "src/a.py, none, b-c"},
        {"id": "b-c", "n": ["SRC-A.PY", "src-a.py"]},
    ]
    assert {item["id"]: item["depends_on"] for item in items(each, elements)} == {
        "work.src-a.py": [],
        "work.B": ["work.src-a.py", "work.b-c"],
        "work.b-c": ["work.src-a.py"],
    }
    assert refused(each, [{"id": "ab", "n": "ac"}]) == (
        "element 1 (ab) depends on 'ac', which is no key of the list; known: ab"
    ) or "did you mean 'ab'?" in refused(each, [{"id": "ab", "n": "ac"}])


def test_the_files_of_an_element_are_those_that_it_names() -> None:
    each = {"result": "find", "key": "id", "files_of": "f"}
    elements = [{"id": "a", "f": "x.py, ,y.py"}, {"id": "b", "f": ["z.py"]}, {"id": "c"}]
    assert [item["files"] for item in items(each, elements)] == [["x.py", "y.py"], ["z.py"], []]
    assert items({"files": "*.py"}, [{"value": "src/a.py", "name": "a.py"}])[0]["files"] == ["src/a.py"]


def test_an_element_may_name_one_of_several_roles() -> None:
    def agents(roles: list[str], **more: Any) -> list[Any]:
        own = {"id": "work", "waves": {"each": {"result": "find", "key": "id"}, "roles": roles, **more}}
        checked, problems = check({"name": "trial", "steps": [FIND, own]})
        assert checked is not None, problems
        found = items_of(checked["steps"][1], [{"id": "a", "agent": "v"}, {"id": "b"}], FACTS)  # type: ignore[arg-type]
        return [item["agent"] for item in found["items"]]

    assert agents(["u", "v"]) == ["v", None]
    assert agents(["v"]) == agents(["u", "v"], per_item="in-turn") == [None, None]


def test_an_element_is_shown_by_its_title_and_described_by_its_fields() -> None:
    (one,) = items({"result": "find", "key": "id"}, [{"id": "a", "title": "The  first\none", "size": 2}])
    assert (one["title"], one["description"]) == ("The first one", "id: a\ntitle: The  first\none\nsize: 2")
    (text,) = items({"param": "langs"}, ["de"])
    assert (text["title"], text["description"]) == ("de", "")


def test_who_is_left_out_is_told_up_to_a_number() -> None:
    def notes(number: int) -> list[str]:
        each = {"param": "langs", "when": {"element": "value", "is": "stays"}}
        return items_of(step(each), [*(f"e{n}" for n in range(number)), "stays"], FACTS)["notes"]

    assert notes(0) == []
    assert "(e0, e1, e2, e3, e4)" in notes(5)[0] and "..." not in notes(5)[0]
    assert "e4" in notes(6)[0] and "e5" not in notes(6)[0]


def test_a_key_as_long_as_may_be_is_not_cut_and_a_longer_one_keeps_what_tells_it_apart() -> None:
    assert key_from("x" * 80) == ("x" * 80, "")
    cut, problem = key_from("x" * 81)
    assert problem == "" and len(cut) == 80 and cut.startswith("x" * 71 + "-") and cut != key_from("x" * 82)[0]
    assert key_from("a--b..c-.d.-e")[0] == "a-b.c-d-e"
