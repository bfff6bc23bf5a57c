"""JSON Schemas, said shortly; and the check that a question has the shape its tool asks for.

Only what the tools use: objects, arrays, texts, numbers, choices. Unknown arguments are refused by name, so that a model
that misremembers one is told, not ignored.
"""

from __future__ import annotations

from typing import Any

from tenuto.errors import BadInput

Schema = dict[str, Any]
_KINDS: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def text(told: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": told} if told else {}), **more}


def number(told: str = "", **more: Any) -> Schema:
    return {"type": "integer", **({"description": told} if told else {}), **more}


def yes_or_no(told: str = "") -> Schema:
    return {"type": "boolean", **({"description": told} if told else {})}


def many(items: Schema, told: str = "") -> Schema:
    return {"type": "array", "items": items, **({"description": told} if told else {})}


def thing(told: str = "", /, required: str = "", **fields: Schema) -> Schema:
    """An object with these fields; the required ones as words."""
    made: Schema = {"type": "object", "properties": fields}
    if required:
        made["required"] = required.split()
    return made | ({"description": told} if told else {})


def asked(required: str = "", **fields: Schema) -> Schema:
    return thing(required=required, **fields) | {"additionalProperties": False}


def check(tool: str, schema: Schema, given: Any) -> dict[str, Any]:
    """What was given, if it fits."""
    problem = _problem("", schema, {} if given is None else given)
    if problem:
        raise BadInput("bad-argument", f"{tool}: {problem}", _usage(tool, schema))
    return dict(given or {})


def _problem(where: str, schema: Schema, value: Any) -> str:
    kind = schema["type"]
    if not isinstance(value, _KINDS[kind]) or (kind == "integer" and isinstance(value, bool)):
        return f"{where or 'the arguments'} must be of type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is one of {', '.join(schema['enum'])}, not {value!r}"
    if kind == "integer" and value < schema.get("minimum", value):
        return f"{where} is at least {schema['minimum']}"
    if kind == "array":
        return next(filter(None, (_problem(f"{where}[{n}]", schema["items"], one) for n, one in enumerate(value))), "")
    return _inside(where, schema, value) if kind == "object" else ""


def _inside(where: str, schema: Schema, value: dict[str, Any]) -> str:
    known, prefix = schema["properties"], f"{where}." if where else ""
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        return f"{prefix}{missing[0]} is missing"
    if schema.get("additionalProperties", True) is False:
        unknown = [name for name in value if name not in known]
        if unknown:
            return f"{prefix}{unknown[0]} is unknown"
    return next(filter(None, (_problem(prefix + name, known[name], one) for name, one in value.items() if name in known)), "")


def _usage(tool: str, schema: Schema) -> str:
    required = schema.get("required", [])
    return f"{tool}: " + ", ".join(name if name in required else f"[{name}]" for name in schema["properties"])
