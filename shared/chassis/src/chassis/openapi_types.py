"""The types of the OpenAPI document: what our fields are in it, the format of numbers, and defaults in words."""

import json
from collections.abc import Mapping
from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin

from chassis import fields

_LARGEST_INT32 = 2**31 - 1


PROBLEMS: dict[str, dict[str, Any]] = {
    "Problem": {
        "type": "object",
        "required": ["type", "title", "status", "detail", "instance", "code", "request_id"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "instance": {"type": "string"},
            "code": {"type": "string"},
            "request_id": {"type": ["string", "null"]},
            "errors": {"type": "array", "items": {"$ref": "#/components/schemas/ProblemError"}},
            "reasons": {"type": "array", "items": {"type": "object"}},
            "results": {"type": "array", "items": {"type": "object"}},
            "intent_id": {"type": "string", "format": "uuid"},
            "backlog": {"type": "string"},
            "entitlement": {"type": "string"},
        },
    },
    "ProblemError": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("pointer", "code", "message")},
    },
}


def json_object(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An answer in JSON that no schema makes: an object that has all of these."""
    schema = {"type": "object", "required": list(properties), "properties": dict(properties)}
    return {"application/json": {"schema": schema}}


def add_formats(node: Any) -> None:
    """Give every integer of a document its format, so that no generated client cuts one off."""
    if isinstance(node, list):
        for item in node:
            add_formats(item)
    elif isinstance(node, dict):
        if _is_integer(node.get("type")):
            node.setdefault("format", "int32" if node.get("maximum", 2**63) <= _LARGEST_INT32 else "int64")
        for value in node.values():
            add_formats(value)


def _is_integer(kind: Any) -> bool:
    return kind == "integer" or (isinstance(kind, list) and "integer" in kind)


def describe_defaults(node: dict[str, Any]) -> None:
    """Say in words what a field is if it is left out: generators make a field with a `default` a required one."""
    for inner in node.values():
        if isinstance(inner, dict):
            describe_defaults(inner)
    if not isinstance(node.get("default", {}), dict):
        default = node.pop("default")
        if default is not None:
            word = default if isinstance(default, str) else json.dumps(default)
            node["description"] = " ".join(filter(None, (node.get("description"), f"`{word}` if it is left out.")))


def teach_fields(plugin: MarshmallowPlugin) -> None:
    """Say what our own fields are in a document."""
    converter = plugin.converter
    if converter is None:
        raise RuntimeError("the plugin is not attached to a document yet")
    plugin.map_to_openapi_type(fields.Text, "string", None)
    plugin.map_to_openapi_type(fields.Choice, "string", None)
    plugin.map_to_openapi_type(fields.Flag, "boolean", None)
    plugin.map_to_openapi_type(fields.Whole, "integer", None)
    plugin.map_to_openapi_type(fields.DecimalText, "string", "decimal")
    plugin.map_to_openapi_type(fields.Identifier, "string", "uuid")
    plugin.map_to_openapi_type(fields.TimeOfDay, "string", "time")
    plugin.map_to_openapi_type(fields.Instant, "string", "date-time")
    converter.add_attribute_function(_constraints)


def _constraints(_converter: Any, field: Any, **_: Any) -> dict[str, Any]:
    if isinstance(field, fields.Text):
        bounds: dict[str, Any] = {"minLength": field.shortest, "maxLength": field.longest}
        return bounds | ({"pattern": f"^(?:{field.pattern.pattern})$"} if field.pattern else {})
    if isinstance(field, fields.Choice):
        return {"enum": [*field.words, None] if field.allow_none else list(field.words)}
    if isinstance(field, fields.Whole):
        return {"minimum": field.least, "maximum": field.most}
    if isinstance(field, fields.DecimalText):
        return {"pattern": field.documented_pattern}
    if isinstance(field, fields.TimeOfDay):
        return {"pattern": f"^{fields.TimeOfDay.PATTERN.pattern}$"}
    return {}
