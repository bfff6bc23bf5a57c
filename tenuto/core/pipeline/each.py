"""A step for every element of a list.

    each: {param: languages}                          a parameter of the run that is a list
    each: {result: find, field: modules}              a field of the result of an earlier step
    each: {lines: [git, ls-files, "*.py"]}            what a command prints; `lines: modules.txt`: a document
    each: {files: "src/**/*.py"}                      files of the repository
    each: {table: modules.md}                         the rows of a table in a document, Markdown or CSV

    read(view, scope)                   from what an author wrote to the record, with a problem for what cannot be meant
    items_of(step, elements, facts)     elements -> the items of the step, or PlanRefused with every element to blame
    length(each, params)                how many elements there can be at most

Rule 1: the list is looked at when the run reaches the step, once in each visit, and recorded. Everything else is
decided from what was recorded.
Rule 2: an element is text, or a mapping of fields. Text has the field `value`; a file has `value`, `name`, `stem` and
`folder`; a row has a field for each column.
Rule 3: every element has a key, and the key is a name: a field of the element, taken as it is, or made from its text,
with a `-` for everything that is no letter, digit, `.`, `-` or `_`. What cannot be a name, and two elements with one
key, are refused with the position of the element. Capitals make no difference between two keys.
Rule 4: an element that names others in its field `depends_on` waits for these. Unknown names and circles are refused.
Rule 5: an element for which `when` does not hold is left out, and nobody waits for it.
Rule 6: a list of more than `max` elements is refused. An empty list is no mistake: there is nothing to do.
Rule 7: of a list that is looked at again, elements run that are new, have changed, or did not end well.
"""

from __future__ import annotations

from tenuto import names
from tenuto.core.items import PlanRefused, in_order
from tenuto.core.pipeline import conditions, values
from tenuto.core.pipeline.params import as_text
from tenuto.core.pipeline.values import View, did_you_mean
from tenuto.encoding import digest, dumps
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypedDict

    from tenuto.core.pipeline.conditions import Facts, Scope
    from tenuto.core.pipeline.records import Each, ParamValue, PathPart, Seat, WavesStep
    from tenuto.core.records.run import PlannedItem

    Fields = dict[str, "ParamValue"]

    class Elements(TypedDict):
        items: list[PlannedItem]
        notes: list[str]  # what was left out, and why


SOURCES = ("param", "result", "lines", "files", "table")
KEYS = (*SOURCES, "field", "seat", "key", "depends_on", "files_of", "when", "max")
USUAL = 100  # elements, unless `max` says otherwise
MOST = 10_000
LONGEST_KEY = 80  # bytes
LONGEST_NAMES = 130  # bytes of a step's id, twice, and of an agent's: with a key, they become the name of a folder
_LONGEST = 4096  # characters of one field
_SHOWN = 5  # problems that are told; the others are counted
_OF_TEXT = ("value",)
_OF_FILES = ("value", "name", "stem", "folder")
_NONE = ("", "-", "–", "none", "n/a")
_MARK = "{each."


def read(view: View, scope: Scope) -> Each:
    """All but `seat`: who prints the lines is read where agents are."""
    found = [word for word in SOURCES if view.get(word).value not in (None, "")]
    if len(found) != 1:
        said = f"names {' and '.join(found)}" if found else "does not say where its list comes from"
        view.note("one-source", f"`each` {said}", f"give exactly one of: {', '.join(SOURCES)}")
    source = found[0] if found else ""
    if source not in ("result", "table") and view.get("field").value not in (None, ""):
        view.get("field").note("contradiction", "only a result and a table have a `field`", "leave it out")
    fields = fields_of(source)
    inside = conditions.Scope(scope.switches, scope.params, scope.steps, scope.answers, fields)
    each: Each = {
        "param": _param(view.get("param"), scope),
        "result": _step(view.get("result"), scope),
        "field": view.get("field").text("the field"),
        "lines": "",
        "seat": None,
        "files": values.read_one(view.get("files"), "the pattern of files"),
        "table": values.read_one(view.get("table"), "the document with the table"),
        "key": _field(view.get("key"), "the key", fields),
        "depends_on": _field(view.get("depends_on"), "the dependencies", fields),
        "files_of": _field(view.get("files_of"), "the files", fields),
        "when": conditions.read(view.get("when"), inside),
        "max": view.get("max").number("max", USUAL, least=1, most=MOST),
    }
    return each


def _param(view: View, scope: Scope) -> str:
    name = view.text("the parameter")
    if not name:
        return ""
    if name not in scope.params:
        view.note("unknown-parameter", f"there is no parameter '{name}'", did_you_mean(name, scope.params))
    elif scope.params[name]["type"] != "list":
        lists = [other for other, param in scope.params.items() if param["type"] == "list"]
        hint = f"lists: {', '.join(lists)}" if lists else f"params: {{{name}: list}}"
        view.note("wrong-type", f"the parameter '{name}' is a {scope.params[name]['type']}, not a list", hint)
    return name


def _step(view: View, scope: Scope) -> str:
    name = view.text("the step")
    if name and name not in scope.steps and name.rpartition("/")[0] not in scope.steps:
        view.note("unknown-step", f"there is no step '{name}'", did_you_mean(name, scope.steps))
    return name


def _field(view: View, what: str, fields: Sequence[str]) -> str:
    name = view.text(what)
    if name and fields and name not in fields:
        view.note("unknown-field", f"an element has no field '{name}'", did_you_mean(name, fields))
    return name


def fields_of(source: str) -> tuple[str, ...]:
    """The fields that every element has; none where only the run will show them."""
    return {"param": _OF_TEXT, "lines": _OF_TEXT, "files": _OF_FILES}.get(source, ())


def source_of(each: Each) -> str:
    return next(
        word for word, given in (("param", each["param"]), ("result", each["result"]), ("lines", each["lines"]),
        ("files", each["files"]), ("table", each["table"]), ("", True)) if given
    )  # fmt: skip


def in_words(each: Each) -> str:
    """For people: what the elements are."""
    match source_of(each):
        case "param":
            return f"each of the parameter {each['param']}"
        case "result":
            return f"each of {each['field'] or 'the list'} in the result of {each['result']}"
        case "files":
            return f"each file {each['files']}"
        case "table":
            return f"each row of {each['table']}"
        case _:
            command = each["seat"]["command"] if each["seat"] else None
            return f"each line of {' '.join(command['run']) if command else each['lines']}"


def length(each: Each, params: Mapping[str, ParamValue] | None) -> int:
    """How many elements there can be at most; of a parameter whose value is known, how many there are."""
    known = params.get(each["param"]) if params is not None else None
    return min(each["max"], len(known)) if isinstance(known, list) else each["max"]


# ---- placeholders ----------------------------------------------------------------------------------


def named_in(text: str) -> list[str]:
    """The fields that a text names as {each.FIELD}."""
    return [part.partition("}")[0] for part in text.split(_MARK)[1:] if "}" in part]


def texts_of(seat: Seat) -> Iterator[str]:
    """Where a field may stand: the arguments and the environment of a command, and what the attempt is called."""
    yield seat["task"]
    if seat["command"]:
        yield from seat["command"]["run"]
        yield from seat["command"]["env"].values()


def check_seat(view: View, seat: Seat, each: Each | None, has_items: bool) -> None:
    """What a seat says about elements is known, and each element has files of its own."""
    fields = fields_of(source_of(each)) if each else ()
    for name in dict.fromkeys(name for text in texts_of(seat) for name in named_in(text)):
        if each is None:
            hint = "give the step an `each`, or leave it out"
            view.note("bad-place", f"'{{each.{name}}}' has no meaning here: the step has no `each`", hint)
        elif fields and name not in fields:
            view.note("unknown-field", f"an element has no field '{name}'", did_you_mean(name, fields))
    printed = [seat["command"]["stdout"]] if seat["command"] and seat["command"]["stdout"] else []
    written = dict.fromkeys([*seat["out"], *seat["optional"], *printed])
    if not has_items:
        for path in written:
            if "{item}" in path or "{number}" in path:
                hint = "give the step an `each`, or leave it out"
                view.note("bad-place", f"'{path}' names an item, and the step has none", hint)
    if each is None:
        return
    for path in written:
        if "{item}" not in path and path not in seat["append_only"]:
            stem, dot, ending = path.rpartition(".")
            better = f"{stem}-{{item}}.{ending}" if dot and "/" not in ending else f"{path}-{{item}}"
            view.note("shared-output", f"every element would write '{path}'", f"for example {better}")


def check_elements(
    view: View, each: Each, places: Iterable[tuple[Sequence[PathPart], Seat]], fields: Sequence[str]
) -> None:
    """What is said about elements whose fields a schema names; none: it leaves them open."""

    def know(place: Sequence[PathPart], name: str) -> None:
        if fields and name not in fields:
            there = view
            for part in place:
                there = there.at(part, None)
            there.note("unknown-field", f"an element has no field '{name}'", did_you_mean(name, fields))

    for word, name in (("key", each["key"]), ("depends_on", each["depends_on"]), ("files_of", each["files_of"])):
        if name:
            know([word], name)
    for way, one in conditions.leaves(each["when"], ("when",)):
        if not isinstance(one, str) and "element" in one:
            know(way, one["element"])
    for _, seat in places:
        for name in dict.fromkeys(name for text in texts_of(seat) for name in named_in(text)):
            know([], name)


# ---- elements -> items -----------------------------------------------------------------------------


def items_of(step: WavesStep, elements: Sequence[object], facts: Facts) -> Elements:
    each = step["waves"]["each"]
    if each is None:
        raise ValueError(f"{step['id']} has no list")
    if len(elements) > each["max"]:
        message = f"the list has {len(elements)} elements; at most {each['max']} are allowed"
        hint = f"say `max` in the step's `each` (at most {MOST}), or make the list shorter"
        raise PlanRefused("too-many-elements", f"{message}: {hint}", [], hint)
    problems: list[str] = []
    known = [_fields(element, position, each, problems) for position, element in enumerate(elements, 1)]
    keys = _keys(each, known, problems)
    _refuse(problems)
    kept = [conditions.holds(each["when"], {**facts, "fields": fields}) for fields in known]
    left_out = {key: None for key, stays in zip(keys, kept, strict=True) if not stays}
    needed, by_name = _needed(step), {key.casefold(): key for key in keys}
    items: list[PlannedItem] = []
    for position, (fields, key, stays) in enumerate(zip(known, keys, kept, strict=True), 1):
        if not stays:
            continue
        who = f"element {position} ({key})"
        for name in needed:
            if name not in fields:
                problems.append(f"{who} has no field '{name}', which the step uses; {did_you_mean(name, fields)}")
        before = _before(each, fields, who, by_name, problems)
        items.append(_item(step, each, fields, key, [other for other in before if other not in left_out]))
    _refuse(problems)
    in_order(items)  # which refuses a circle, by the keys
    return {
        "items": [_of_step(step["id"], item) for item in items],
        "notes": _left_out(each, list(left_out), len(elements)),
    }


def _refuse(problems: list[str]) -> None:
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise PlanRefused("bad-list", "; ".join(problems[:_SHOWN]) + more, [], "correct the list")


def _fields(element: object, position: int, each: Each, problems: list[str]) -> Fields:
    """What is known of an element, by name. Text is the field `value`."""
    if isinstance(element, dict):
        fields: Fields = {str(name): _value(value) for name, value in element.items() if value is not None}
        if not fields:
            problems.append(f"element {position} has no field with a value")
    elif isinstance(element, str | int | float):
        fields = {"value": element}
    else:
        problems.append(f"element {position} is {values.kind_of(element)}, not text or a mapping of fields")
        return {}
    for name, value in fields.items():
        text = as_text(value)
        if len(text) > _LONGEST:
            problems.append(f"element {position}: its {name} is longer than {_LONGEST} characters")
        elif "\0" in text:
            problems.append(f"element {position}: its {name} holds a NUL")
        elif any("\ud800" <= sign <= "\udfff" for sign in text):
            problems.append(f"element {position}: its {name} is not text")
    return fields


def _value(value: object) -> ParamValue:
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return [as_text(one) for one in value]
    return dumps(value)


def _keys(each: Each, known: Sequence[Fields], problems: list[str]) -> list[str]:
    keys: list[str] = []
    seen: dict[str, int] = {}
    for position, fields in enumerate(known, 1):
        key, problem = _key(each, fields) if fields else ("", "")  # without fields it was refused before
        if problem:
            problems.append(f"element {position}{_called(fields)}: {problem}")
        other = seen.setdefault(key.casefold(), position) if key and not problem else position
        if other != position:
            one, two = _called(known[other - 1]), _called(fields)
            way = "" if each["key"] else "; name a field as `key`, or write them differently"
            problems.append(f"elements {other}{one} and {position}{two} have the same key '{key}'{way}")
        keys.append(key)
    return keys


def _called(fields: Fields) -> str:
    text = _text(fields)
    return f" ('{text[:60]}')" if text else ""


def _text(fields: Fields) -> str:
    """What an element is called where it has no key of its own."""
    for name in ("value", "id", "key", "name", "title"):
        if name in fields:
            return as_text(fields[name])
    return as_text(next(iter(fields.values()))) if fields else ""


def _key(each: Each, fields: Fields) -> tuple[str, str]:
    """The key, and why it cannot be one."""
    if not each["key"]:
        return key_from(_text(fields))
    if each["key"] not in fields:
        return "", f"it has no field '{each['key']}', which is the key; {did_you_mean(each['key'], fields)}"
    key = _normal(as_text(fields[each["key"]]))
    try:
        names.check(key, "key")
    except BadInput as refused:
        return key, refused.message
    wrong = next((sign for sign in key if not _fits(sign)), "")
    if wrong or key[0] == "." or ".." in key:
        said = f"it holds the character U+{ord(wrong):04X}" if wrong else "its dots are not where a name may have some"
        return key, f"the key '{key}' cannot be used: {said}; use letters, digits, '-', '_' and '.'"
    if len(key.encode()) > LONGEST_KEY:
        return key, f"the key '{key[:40]}...' is longer than {LONGEST_KEY} bytes"
    return key, ""


def key_from(text: str) -> tuple[str, str]:
    """A name made from a text, and why none could be made."""
    made = "".join(sign if _fits(sign) else "-" for sign in _normal(text))
    for twice in ("--", "..", "-.", ".-"):
        while twice in made:
            made = made.replace(twice, "-" if "-" in twice else ".")
    made = made.strip("-.")
    if not any(sign.isalnum() for sign in made):
        return "", f"'{text[:60]}' has no letter or digit to make a key from"
    if len(made.encode()) > LONGEST_KEY:
        # Two long texts that begin alike must not become one.
        cut = made.encode()[: LONGEST_KEY - 9].decode("utf-8", "ignore").rstrip("-.")
        made = f"{cut}-{digest(text.encode('utf-8', 'surrogatepass'))[:8]}"
    try:
        names.check(made, "key")
    except BadInput as refused:
        return made, refused.message
    return made, ""


def _normal(text: str) -> str:
    """Letters that look alike are the same letters."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text.encode("utf-8", "ignore").decode())


def _fits(sign: str) -> bool:
    return sign.isalnum() or sign in "-_."


def _before(each: Each, fields: Fields, who: str, by_name: Mapping[str, str], problems: list[str]) -> list[str]:
    """The keys that it waits for, each as it is written in the list."""
    given = fields.get(each["depends_on"], "") if each["depends_on"] else ""
    words = given if isinstance(given, list) else [part.strip() for part in as_text(given).split(",")]
    found: list[str] = []
    for word in words:
        if word.strip().lower() in _NONE:
            continue
        other = by_name.get(word.casefold()) or by_name.get(key_from(word)[0].casefold())
        if other is None:
            near = did_you_mean(word, list(by_name.values())[:1000]) if len(problems) < _SHOWN else ""
            problems.append(f"{who} depends on '{word}', which is no key of the list; {near}")
        elif other not in found:
            found.append(other)
    return found


def _needed(step: WavesStep) -> list[str]:
    """The fields that the step's seats name."""
    texts = (text for seat in step["waves"]["seats"] for text in texts_of(seat))
    return list(dict.fromkeys(name for text in texts for name in named_in(text)))


def _item(step: WavesStep, each: Each, fields: Fields, key: str, before: list[str]) -> PlannedItem:
    own = fields.get(each["files_of"], [])
    files = own if isinstance(own, list) else [part.strip() for part in as_text(own).split(",") if part.strip()]
    if each["files"]:
        files = [as_text(fields["value"])]
    several = len(step["waves"]["seats"]) > 1 and step["waves"]["per_item"] == "named"
    described = "\n".join(f"{name}: {as_text(value)}" for name, value in fields.items() if name != "value")
    title = as_text(fields["title"]) if "title" in fields else _text(fields)
    return {
        "id": key,
        "title": " ".join(title.split()),
        "files": files,
        "depends_on": before,
        "agent": as_text(fields["agent"]) if several and "agent" in fields else None,
        "wave": None,
        "description": described,
        "effort": None,
        "lines": None,
        "digest": digest(dumps([fields, before]).encode()),
        "key": key,
        "step": step["id"],
        "fields": fields,
    }


def _of_step(step: str, item: PlannedItem) -> PlannedItem:
    """Two steps may have the same keys: in the run, an item is called after its step."""
    return {**item, "id": f"{step}.{item['id']}", "depends_on": [f"{step}.{name}" for name in item["depends_on"]]}


def _left_out(each: Each, keys: list[str], total: int) -> list[str]:
    if not keys:
        return []
    shown = ", ".join(keys[:_SHOWN]) + (f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else "")
    return [f"{len(keys)} of {total} elements are left out ({shown}): {conditions.why_not(each['when'])}"]
