"""JSON Schema, the part of it that results are checked with (draft 2020-12).

    check(view)              note everything in a schema that is wrong, or that we would not carry out
    misfits(value, schema)   [(place, reason), ...]: where a value does not fit a schema that was checked
    field_of(value, field)   "open.high", "items.0.name"; None where there is no such field
    known_field(schema, f)   what a schema says about one field: its shapes; None where it says nothing
    fields_of_elements(...)  the fields that the elements of a list have

Every keyword is carried out as the standard says, or is refused by its name when the pipeline is checked. None is ever
passed over: a rule that its author believes in and nobody applies is worse than none. The keywords are in KEYWORDS and
NOTES; docs/decisions/0012-results.md says why these.

Two limits, so that no value can hold up an engine: a schema nests at most 32 deep, and at most a million comparisons
are made for one value. A value that would take more does not fit.
"""

from __future__ import annotations

from tenuto.core.pipeline.values import did_you_mean, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenuto.core.pipeline.values import View
    from tenuto.core.records.run import Json

    Misfit = tuple[str, str]

TYPES = ("null", "boolean", "object", "array", "number", "integer", "string")
NOTES = ("$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated")
"""Keywords that say something to people and check nothing, in the standard, too."""
KEYWORDS = (
    "type", "enum", "const",
    "properties", "required", "additionalProperties", "minProperties", "maxProperties",
    "items", "minItems", "maxItems", "uniqueItems",
    "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "allOf", "anyOf", "oneOf", "not", "$ref", "$defs",
)  # fmt: skip
_INSTEAD = {
    "pattern": "list the words with enum, or limit the length: patterns can take for ever",
    "format": "it checks nothing in most programs; use enum, minLength, minimum",
    "definitions": "it is called $defs",
    "dependencies": "use anyOf",
    "if": "use anyOf",
    "prefixItems": "use an object with properties",
    "patternProperties": "use additionalProperties",
    "unevaluatedProperties": "use additionalProperties",
    "contains": "use items",
}
_COUNTS = ("minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SEVERAL = ("allOf", "anyOf", "oneOf")
_DEEPEST = 32
_MOST_STEPS = 1_000_000
_MOST_MISFITS = 8
_DEFS = "#/$defs/"


# ---- checked ---------------------------------------------------------------------------------------


def check(view: View) -> None:
    if not isinstance(view.value, dict):
        view.note("wrong-type", f"a schema must be a mapping, not {kind_of(view.value)}", "for example {type: object}")
        return
    before = len(view.problems)
    defs = view.value.get("$defs")
    _check(view, view.value, list(defs) if isinstance(defs, dict) else [], 0)
    if len(view.problems) == before:
        _refuse_circles(view, view.value)


def _check(view: View, root: Json, defs: list[str], depth: int) -> None:
    if isinstance(view.value, bool):
        return
    if not isinstance(view.value, dict):
        view.note("wrong-type", f"a schema must be a mapping, not {kind_of(view.value)}", "for example {type: string}")
        return
    if depth > _DEEPEST:
        view.note("too-deep", f"a schema nests at most {_DEEPEST} deep", "name parts of it under $defs")
        return
    for word, own in view.fields():
        if word in NOTES:
            continue
        if word not in KEYWORDS:
            hint = _INSTEAD.get(word) or did_you_mean(word, (*KEYWORDS, *NOTES))
            own.note("unknown-keyword", f"'{word}' is not carried out here, so a schema cannot have it", hint)
        elif word == "$defs" and depth:
            own.note("bad-place", "$defs stands at the top of a schema", "move it there")
        else:
            _check_keyword(own, word, root, defs, depth)


def _check_keyword(view: View, word: str, root: Json, defs: list[str], depth: int) -> None:
    value = view.value
    if word == "type":
        _check_type(view)
    elif word == "$ref":
        _check_ref(view, defs)
    elif word == "enum":
        if not isinstance(value, list) or not value:
            view.note("wrong-type", f"enum needs a list of values, not {kind_of(value)}", "for example [low, high]")
    elif word == "required":
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            view.note("wrong-type", f"required needs a list of names, not {kind_of(value)}", "for example [id, title]")
    elif word in _COUNTS:
        view.whole(word, 0)
        if value is None:
            view.note("wrong-type", f"{word} must be a whole number, not nothing")
    elif word in _NUMBERS or word == "multipleOf":
        _check_number(view, word)
    elif word == "uniqueItems":
        if not isinstance(value, bool):
            view.note("wrong-type", f"uniqueItems must be true or false, not {kind_of(value)}")
    elif word in ("properties", "$defs"):
        if not isinstance(value, dict):
            view.note("wrong-type", f"{word} must be a mapping of names to schemas, not {kind_of(value)}")
        for _, own in view.fields():
            _check(own, root, defs, depth + 1)
    elif word in _SEVERAL:
        if not isinstance(value, list) or not value:
            view.note("wrong-type", f"{word} needs a list of schemas, not {kind_of(value)}")
        else:
            for own in view.entries():
                _check(own, root, defs, depth + 1)
    elif word in ("items", "additionalProperties", "not"):
        _check(view, root, defs, depth + 1)


def _check_type(view: View) -> None:
    types = view.value if isinstance(view.value, list) else [view.value]
    if not types:
        view.note("wrong-type", "type names at least one type", f"known: {', '.join(TYPES)}")
    for one in types:
        if one not in TYPES:
            hint = 'write it in quotes: "null"' if one is None else did_you_mean(str(one), TYPES)
            named = f"'{one}'" if isinstance(one, str) else f"like {kind_of(one)}"
            view.note("unknown-value", f"there is no type {named}", hint)


def _check_number(view: View, word: str) -> None:
    value = view.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        view.note("wrong-type", f"{word} must be a number, not {kind_of(value)}")
    elif word == "multipleOf" and (not isinstance(value, int) or value < 1):
        view.note("out-of-range", f"multipleOf must be a whole number from 1 on, not {value}", "for example 5")


def _check_ref(view: View, defs: list[str]) -> None:
    value = view.value
    if not isinstance(value, str) or not value.startswith(_DEFS):
        view.note("bad-reference", f"$ref leads to $defs of the same schema, not to {kind_of(value)}", f"{_DEFS}NAME")
    elif value[len(_DEFS) :] not in defs:
        name = value[len(_DEFS) :]
        view.note("bad-reference", f"there is no $defs '{name}'", did_you_mean(name, defs) or "it has no $defs")


def _refuse_circles(view: View, root: Json) -> None:
    """A reference that leads back to itself before it has looked into the value would never end."""
    defs = root.get("$defs", {})
    for name in defs:
        seen: list[str] = []
        waiting = list(_led_to(defs[name]))
        while waiting:
            other = waiting.pop()
            if other == name:
                view.get("$defs").at(name, None).note(
                    "bad-reference", f"'{name}' is defined by itself", "break the circle"
                )
                return
            if other not in seen:
                seen.append(other)
                waiting += _led_to(defs[other])


def _led_to(schema: object) -> Iterator[str]:
    """The definitions that are asked about the same value."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield str(schema["$ref"])[len(_DEFS) :]
    for one in [*(part for word in _SEVERAL for part in schema.get(word, ())), schema.get("not")]:
        yield from _led_to(one)


# ---- asked -----------------------------------------------------------------------------------------


class _Check:
    """One value against one schema."""

    __slots__ = ("defs", "left")

    def __init__(self, root: Json) -> None:
        self.defs: Json = root.get("$defs", {})
        self.left = _MOST_STEPS

    def misfits(self, value: object, schema: object, place: str) -> Iterator[Misfit]:
        self.left -= 1
        if self.left < 0:
            raise RecursionError
        if schema is False:
            yield place, "nothing may stand here"
        if not isinstance(schema, dict):
            return
        types = schema.get("type", TYPES)
        if not any(is_a(value, one) for one in (types if isinstance(types, list | tuple) else [types])):
            wanted = " or ".join(types) if isinstance(types, list) else types
            yield place, f"{an(str(wanted))} is needed, not {_shown(value)}"
            return
        yield from self._words(value, schema, place)
        if isinstance(value, dict):
            yield from self._object(value, schema, place)
        elif isinstance(value, list):
            yield from self._array(value, schema, place)
        elif isinstance(value, str):
            yield from _sized(len(value), schema, place, "Length", "characters")
        elif is_a(value, "number"):
            yield from _number(value, schema, place)
        yield from self._several(value, schema, place)

    def fits(self, value: object, schema: object) -> bool:
        return next(self.misfits(value, schema, ""), None) is None

    def _words(self, value: object, schema: Json, place: str) -> Iterator[Misfit]:
        if "enum" in schema and not any(same(value, one) for one in schema["enum"]):
            yield place, f"{_shown(value)} is none of {', '.join(_shown(one) for one in schema['enum'][:20])}"
        if "const" in schema and not same(value, schema["const"]):
            yield place, f"{_shown(value)} is not {_shown(schema['const'])}"

    def _object(self, value: Json, schema: Json, place: str) -> Iterator[Misfit]:
        for name in schema.get("required", ()):
            if name not in value:
                yield place, f"'{name}' is missing"
        yield from _sized(len(value), schema, place, "Properties", "fields")
        known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, own in value.items():
            below = f"{place}.{name}" if place else name
            if name in known:
                yield from self.misfits(own, known[name], below)
            elif other is False:
                yield below, "there is no such field; " + (did_you_mean(name, list(known)) or "it has none")
            elif other is not True:
                yield from self.misfits(own, other, below)

    def _array(self, value: list[object], schema: Json, place: str) -> Iterator[Misfit]:
        yield from _sized(len(value), schema, place, "Items", "elements")
        if "items" in schema:
            for number, own in enumerate(value):
                yield from self.misfits(own, schema["items"], f"{place}[{number}]")
        if schema.get("uniqueItems"):
            seen: dict[object, int] = {}
            for number, own in enumerate(value):
                first = seen.setdefault(_key(own), number)
                if first != number:
                    yield f"{place}[{number}]", f"it is the same as element {first}"
                    return

    def _several(self, value: object, schema: Json, place: str) -> Iterator[Misfit]:
        if "$ref" in schema:
            yield from self.misfits(value, self.defs[schema["$ref"][len(_DEFS) :]], place)
        for one in schema.get("allOf", ()):
            yield from self.misfits(value, one, place)
        if "anyOf" in schema and not any(self.fits(value, one) for one in schema["anyOf"]):
            yield self._nearest(value, schema["anyOf"], place)
        if "oneOf" in schema:
            fitting = [number for number, one in enumerate(schema["oneOf"]) if self.fits(value, one)]
            if not fitting:
                yield self._nearest(value, schema["oneOf"], place)
            elif len(fitting) > 1:
                yield place, f"it fits {len(fitting)} shapes of oneOf, and must fit exactly one"
        if "not" in schema and self.fits(value, schema["not"]):
            yield place, f"{_shown(value)} is what it must not be"

    def _nearest(self, value: object, shapes: Sequence[object], place: str) -> Misfit:
        """What is wrong with it in the light of the shape that it comes closest to: the one whose misfit is deepest."""
        first = [next(self.misfits(value, one, place)) for one in shapes]
        there, why = max(first, key=lambda misfit: len(misfit[0]))
        return there, f"it fits none of the {len(shapes)} shapes; of the nearest: {why}" if len(shapes) > 1 else why


def misfits(value: object, schema: Json) -> list[Misfit]:
    """The first few; the last of them says how many more there are, at least."""
    found: list[Misfit] = []
    try:
        for misfit in _Check(schema).misfits(value, schema, ""):
            if len(found) == _MOST_MISFITS:
                found.append(("", "and there is more that does not fit"))
                break
            found.append(misfit)
    except RecursionError:
        found.append(("", "it is too large or too deeply nested to be checked"))
    return found


def _sized(size: int, schema: Json, place: str, what: str, unit: str) -> Iterator[Misfit]:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least is not None and size < least:
        yield place, f"it has {size} {unit}, and needs at least {least}"
    if most is not None and size > most:
        yield place, f"it has {size} {unit}, and may have at most {most}"


_LIMITS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "minimum": (lambda value, limit: value >= limit, "at least"),
    "maximum": (lambda value, limit: value <= limit, "at most"),
    "exclusiveMinimum": (lambda value, limit: value > limit, "more than"),
    "exclusiveMaximum": (lambda value, limit: value < limit, "less than"),
    "multipleOf": (lambda value, limit: value % limit == 0, "a multiple of"),
}


def _number(value: object, schema: Json, place: str) -> Iterator[Misfit]:
    for word, (holds, said) in _LIMITS.items():
        if word in schema and isinstance(value, int | float) and not holds(value, schema[word]):
            yield place, f"{value} is not {said} {schema[word]}"


def is_a(value: object, kind: object) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "integer":
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
    return kind == "number" and isinstance(value, int | float) and not isinstance(value, bool)


def same(a: object, b: object) -> bool:
    """As JSON has it: 1 and 1.0 are one number, true is none, the order of fields is nothing."""
    return _key(a) == _key(b)


def _key(value: object) -> object:
    if isinstance(value, dict):
        return "object", frozenset((name, _key(own)) for name, own in value.items())
    if isinstance(value, list):
        return "array", tuple(_key(own) for own in value)
    return ("boolean", value) if isinstance(value, bool) else (str(isinstance(value, str)), value)


def _shown(value: object) -> str:
    from tenuto.encoding import dumps

    text = dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def an(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else word if word == "null" else f"a {word}"


# ---- fields ----------------------------------------------------------------------------------------


def field_of(value: object, field: str) -> object | None:
    """Names, and numbers of elements, with dots between them; "" is the whole."""
    for part in field.split(".") if field else ():
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def shapes_of(schema: object, root: Json) -> list[Json]:
    """The schemas that one value is held against: references followed, every alternative for itself."""
    found: list[Json] = []
    waiting = [schema]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, dict):
            found.append(one)
            if "$ref" in one:
                waiting.append(root["$defs"][one["$ref"][len(_DEFS) :]])
            waiting += [part for word in _SEVERAL for part in one.get(word, ())]
    return found


def known_field(root: Json, field: str) -> tuple[list[Json], str, list[str]]:
    """(its shapes, "", []); ([], "", []) where the schema leaves it open; ([], the part that it does not have, those
    that it has). A field that is not among the properties counts as missing unless additionalProperties says more."""
    shapes = shapes_of(root, root)
    for part in field.split(".") if field else ():
        below: list[object] = []
        names: list[str] = []
        for shape in shapes:
            other = shape.get("additionalProperties")
            names += [name for name in shape.get("properties", {}) if name not in names]
            if part in shape.get("properties", {}):
                below.append(shape["properties"][part])
            elif isinstance(other, dict) or (other is True and "properties" in shape):
                below.append(other)
            if part.isdigit() and "items" in shape:
                below.append(shape["items"])
        if not below:
            return [], (part if names else ""), names
        shapes = [shape for one in below for shape in shapes_of(one, root)]
        if not shapes:
            return [], "", []
    return shapes, "", []


def fields_of_elements(root: Json, shapes: list[Json]) -> list[str]:
    """The fields of a list's elements; text has one, which is called value. [] where the schema leaves them open."""
    below = [one for shape in shapes for one in (shapes_of(shape["items"], root) if "items" in shape else ())]
    types = types_of(below)
    if types and "object" not in types:
        return ["value"]
    if types != ["object"] or any(shape.get("additionalProperties") not in (None, False) for shape in below):
        return []
    return list(dict.fromkeys(name for shape in below for name in shape.get("properties", ())))


def types_of(shapes: list[Json]) -> list[str]:
    """The types that a value of one of these shapes can have; [] where any can."""
    ends = [shape for shape in shapes if not any(word in shape for word in (*_SEVERAL, "$ref"))]
    if any("type" not in shape for shape in ends):
        return []
    named = [
        shape["type"] if isinstance(shape["type"], list) else [shape["type"]] for shape in shapes if "type" in shape
    ]
    return list(dict.fromkeys(kind for kinds in named for kind in kinds))


def words_of(shapes: list[Json]) -> list[object]:
    """The values that the only shape lists; [] where it lists none, or where there are several shapes."""
    if len(shapes) != 1:
        return []
    return [*shapes[0].get("enum", []), *([shapes[0]["const"]] if "const" in shapes[0] else [])]
