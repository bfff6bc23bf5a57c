"""Parameters: what a run may be told besides its request.

    params:
      target: {type: choice, of: [web, api], default: web, description: What is released.}
      depth: 3                    a number, 3 unless the run says otherwise; `dry: false` is a flag, `[a, b]` a choice
      notes: file                 a type alone: text, number, flag, file, list; such a parameter must be given

      regions: {type: several, of: [eu, us], required: false}     any of these; without a value where nobody gives one

    read(view)                    the declarations, checked
    values(params, given)         what the run is told, checked and complete; BadInput names everything that is wrong
    fill(raw, params, values)     the definition with every {params.NAME} replaced

A value takes the place of `{params.NAME}` in the text of a definition, once, when a run is bound to it. Nothing is
computed, and nothing that a value holds is read as anything but text: a path that a value makes is checked as a path
afterwards, and an argument of a command is one argument. An argument, or a path, that is one optional parameter alone
is left out where that has no value.
"""

from __future__ import annotations

from tenuto.core.pipeline.values import View, did_you_mean, kind_of, near_word
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenuto.core.pipeline.records import Param, ParamType, ParamValue, PathPart, Problem

TYPES: tuple[ParamType, ...] = ("text", "number", "flag", "choice", "several", "file", "list")
_CHOOSE = ("choice", "several")
FILLED = (
    "focus", "task", "in", "if_present", "out", "optional", "append_only", "touches", "show", "prompt", "command",
    "env", "file", "lines", "files", "table",
)  # fmt: skip
"""The keys of a step in whose text a parameter may stand."""
HANDED_IN = "params"  # of a step with a sub-pipeline: what that is given
MOST = 100
_LONGEST = 4096  # characters of a text
_LONGEST_LIST = 100_000
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_WORDS = {"text": "text", "number": "a number", "flag": "yes or no", "file": "a file", "list": "a list"}
_SAMPLES: dict[str, ParamValue] = {"number": 1, "flag": True, "file": "file.md", "list": ["element"]}


def read(view: View, what: str = "a parameter") -> dict[str, Param]:
    """`what`: what one of them is called; the fields of a gate are declared in the same words."""
    several = f"{what.partition(' ')[2]}s"
    if view.value is None:
        return {}
    if not isinstance(view.value, dict):
        message = f"{several} must be a mapping, not {kind_of(view.value)}"
        view.note("wrong-type", message, "for example {target: text}")
        return {}
    if len(view.value) > MOST:
        view.note("out-of-range", f"there are at most {MOST} {several}, not {len(view.value)}")
        return {}
    params: dict[str, Param] = {}
    for name, declared in view.fields():
        fixed = isinstance(declared.value, dict) and declared.value.get("fixed") is True
        if not all(_is_name(part) for part in (name.split(".") if fixed else [name])):
            declared.note("bad-id", f"{what} cannot be called '{name}'", "use letters, digits, '-' and '_'")
            continue
        params[name] = _param(declared, f"{what.replace('a ', 'the ', 1)} {name}", name)
    return params


def _is_name(text: str) -> bool:
    plain = text.replace("_", "a").replace("-", "a")
    return text.isascii() and plain.isalnum() and text[0].isalpha()


def _param(view: View, what: str, name: str) -> Param:
    value = view.value
    if isinstance(value, list):
        view = view.at_same({"type": "choice", "of": value})
    elif isinstance(value, bool | int | float):
        view = view.at_same({"type": "flag" if isinstance(value, bool) else "number", "default": value})
    elif isinstance(value, str):
        if value not in TYPES and not near_word(value, TYPES):
            hint = (
                f"{name}: {{default: {value}}} is a text with this default; a type alone is one of: {', '.join(TYPES)}"
            )
            view.note("unknown-value", f"'{value}' is no type of a parameter", hint)
            value = "text"
        view = view.at_same({"type": value})
    view.is_mapping(what, ("type", "of", "choices", "default", "required", "description", "fixed"))
    choices = (view.get("choices") if view.has("choices") else view.get("of")).words("a choice")
    if view.get("of").value == []:
        view.get("of").note("empty", f"there is nothing to choose from for {what}", "for example of: [web, api]")
    kind = view.get("type").choice("the type", TYPES, "choice" if choices else "text")
    if bool(choices) != (kind in _CHOOSE):
        message = f"a {kind} has no `of`" if choices else f"{_a(kind)} needs `of`: what there is to choose from"
        view.get("of").note("contradiction", message, f"for example {{type: {_chosen(kind)}, of: [web, api]}}")
    param: Param = {
        "type": kind,  # type: ignore[typeddict-item]  # one of TYPES
        "choices": choices,
        "default": None,
        "required": view.get("required").flag("required", True),
        "description": view.get("description").text("the description"),
    }
    default = view.get("default")
    if default.value is not None:
        problem = wrong(param, default.value)
        if problem:
            default.note("wrong-value", f"the default of '{name}': {problem}")
        else:
            param["default"] = _own(default.value)
    if view.get("fixed").flag("fixed", False):
        param["fixed"] = True
        if param["default"] is None and param["required"]:
            view.note("missing", f"{what} is fixed, and has no value", "give it a default")
    return param


def _a(kind: str) -> str:
    return "several" if kind == "several" else f"a {kind}"


def _chosen(kind: str) -> str:
    return kind if kind in _CHOOSE else "choice"


def wrong(param: Param, value: object) -> str:
    """Why this cannot be its value; "" where it can."""
    kind = param["type"]
    if kind == "number":
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"a number is needed, not {kind_of(value)}"
        return ""
    if kind == "flag":
        return "" if isinstance(value, bool) else f"true or false is needed, not {kind_of(value)}"
    if kind in ("list", "several"):
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            return f"a list of text is needed, not {kind_of(value)}"
        if kind == "several":
            return _wrong_several(param, value)
        return "" if len(value) <= _LONGEST_LIST else f"it has {len(value)} elements; at most {_LONGEST_LIST} are read"
    if not isinstance(value, str) or not value:
        return f"text is needed, not {kind_of(value)}"
    if len(value) > _LONGEST or "\0" in value:
        return f"it is longer than {_LONGEST} characters" if len(value) > _LONGEST else "it holds a NUL"
    if kind == "choice" and value not in param["choices"]:
        return f"'{value}' is none of the choices; {did_you_mean(value, param['choices'])}"
    if kind == "file" and not _is_below(value):
        return f"'{value}' is no path below the repository"
    return ""


def _is_below(path: str) -> bool:
    """And not git's own. A name that no document may have is all right here: the file is there already."""
    parts = path.split("/")
    return not path.startswith("/") and not any(part == ".." or part.lower() == ".git" for part in parts)


def _wrong_several(param: Param, value: list[str]) -> str:
    for place, one in enumerate(value):
        if one not in param["choices"]:
            return f"'{one}' is none of the choices; {did_you_mean(one, param['choices'])}"
        if one in value[:place]:
            return f"'{one}' is there twice"
    return "" if value or not param.get("required", True) else "at least one of the choices is needed"


def from_text(param: Param, text: str) -> object:
    """What somebody typed, as a value of its type; what cannot be one stays text, and is found wrong."""
    kind = param["type"]
    if kind == "flag":
        return _FLAGS.get(text.lower(), text)
    if kind in ("list", "several"):
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind == "number":
        bare = text.removeprefix("-")
        whole, point, rest = bare.partition(".")
        if (whole + rest).isdecimal() and bare.isascii() and len(bare) <= 15 and whole:
            return float(text) if point else int(text)
    return text


def values(pipeline: str, params: Mapping[str, Param], given: Mapping[str, object]) -> dict[str, ParamValue]:
    """Everything that is wrong is said at once."""
    found, problems = complete(params, given, f"{pipeline} has no parameter")
    if problems:
        raise BadInput("bad-params", "; ".join(problems), "--param NAME=VALUE, or --params-file FILE")
    return found


def complete(
    params: Mapping[str, Param], given: Mapping[str, object], unknown: str
) -> tuple[dict[str, ParamValue], list[str]]:
    """The values, with the defaults of what is not given; and everything that is wrong. `unknown`: what to say of a
    name that is not declared."""
    problems: list[str] = []
    found: dict[str, ParamValue] = {}
    for name in given:
        if name not in params:
            problems.append(f"{unknown} '{name}' ({did_you_mean(name, params) or 'it has none'})")
    lacking = missing(params, given)
    for name, param in params.items():
        if name in lacking:
            problems.append(f"'{name}' is missing: {describe(param)}")
        elif name not in given:
            if param["default"] is not None:
                found[name] = _own(param["default"])
        elif param.get("fixed") and given[name] != param["default"]:
            problems.append(f"'{name}' is fixed by the pipeline: {_shown(param['default'])}")
        elif problem := wrong(param, given[name]):
            problems.append(f"'{name}': {problem}")
        else:
            found[name] = _own(given[name])
    return found, problems


def _shown(value: ParamValue | None) -> str:
    return "it has no value" if value is None else f"it is {as_text(value)}"


def without_fixed(params: Mapping[str, Param], given: Mapping[str, object]) -> dict[str, object]:
    """What a run was told: the values that its pipeline gives itself follow from these, and are not kept."""
    return {name: value for name, value in given.items() if name not in params or not params[name].get("fixed")}


def missing(params: Mapping[str, Param], given: Mapping[str, object]) -> list[str]:
    """Those that must be given, and are not."""
    return [
        name
        for name, param in params.items()
        if name not in given and param["default"] is None and param.get("required", True)
    ]


def samples(params: Mapping[str, Param]) -> dict[str, ParamValue]:
    """Something of each type, for looking at a pipeline before there is a run: a text is its own name, WHO."""
    return {
        name: param["default"]
        if param["default"] is not None
        else param["choices"][:1]
        if param["type"] == "several"
        else param["choices"][0]
        if param["choices"]
        else _SAMPLES.get(param["type"], name.upper())
        for name, param in params.items()
    }


def describe(param: Param) -> str:
    chosen = "any of" if param["type"] == "several" else "one of"
    kind = f"{chosen} {', '.join(param['choices'])}" if param["choices"] else _WORDS[param["type"]]
    return f"{kind}; {param['description']}" if param["description"] else kind


# ---- filled in -------------------------------------------------------------------------------------


def fill(raw: object, params: Mapping[str, Param], given: Mapping[str, ParamValue]) -> tuple[object, list[Problem]]:
    """A copy of a definition, as read from its file, with the values in place; and what cannot be placed."""
    problems: list[Problem] = []

    def place(value: object, path: list[PathPart], allowed: bool) -> object:
        if isinstance(value, dict):
            return {
                key: place(entry, [*path, key], path[:1] == ["steps"] and (allowed or key in FILLED))
                for key, entry in value.items()
            }
        if isinstance(value, list):
            kept = ((index, entry) for index, entry in enumerate(value) if not _is_nothing(entry, params, given))
            return [place(entry, [*path, index], allowed) for index, entry in kept]
        if not isinstance(value, str) or "{params." not in value:
            return value
        handed_in = len(path) == 4 and path[2] == HANDED_IN
        name = value.removeprefix("{params.").removesuffix("}")
        if handed_in and value == f"{{params.{name}}}" and name in params:
            return _own(given[name]) if name in given else None  # the value itself, of whatever type
        return None if _is_nothing(value, params, given) else _placed(value, path, allowed or handed_in)

    def _placed(text: str, path: list[PathPart], allowed: bool) -> str:
        before, *parts = text.split("{params.")
        filled = before
        for part in parts:
            name, closed, rest = part.partition("}")
            problem = _unplaceable(name if closed else "", params, allowed)
            if problem:
                problems.append({"path": path, "code": problem[0], "message": problem[1], "hint": problem[2]})
            filled += as_text(given.get(name, "")) + rest
        return filled

    return place(raw, [], False), problems


def _is_nothing(value: object, params: Mapping[str, Param], given: Mapping[str, ParamValue]) -> bool:
    """A text that is one optional parameter, which has no value: as if it were not written."""
    if not isinstance(value, str) or not value.startswith("{params.") or not value.endswith("}"):
        return False
    name = value.removeprefix("{params.").removesuffix("}")
    return name in params and name not in given and not params[name].get("required", True)


def _unplaceable(name: str, params: Mapping[str, Param], allowed: bool) -> tuple[str, str, str] | None:
    if name not in params:
        return "unknown-parameter", f"there is no parameter '{name}'", did_you_mean(name, params)
    if not allowed:
        return "bad-place", f"'{{params.{name}}}' cannot stand here", f"it can in: {', '.join(FILLED)}"
    if params[name]["type"] == "list":
        return "bad-place", f"'{name}' is a list, and cannot be part of a text", "use it in `each`"
    return None


def as_text(value: ParamValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _own(value: object) -> ParamValue:
    return list(value) if isinstance(value, list) else value  # type: ignore[return-value]  # wrong() has looked at it
