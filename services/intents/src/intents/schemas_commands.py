"""The three commands as the OpenAPI document has them; marshmallow has no word for "one of"."""

from collections.abc import Mapping
from typing import Any

from chassis.fields import DecimalText
from intents import model

_DECIMAL = {"type": "string", "pattern": f"^{DecimalText.PATTERN.pattern}$", "examples": ["10", "12.5"]}
_SYMBOL = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,31}$", "examples": ["AAPL"]}
_REFERENCE = {"type": "string", "format": "uuid"}
_CLIENT_ID = {"type": "string", "pattern": f"^[ -~]{{1,{model.CLIENT_ID_LONGEST}}}$"}
_TAG = {"type": "string", "pattern": f"^[ -~]{{1,{model.TAG_LONGEST}}}$"}
_TAGS = {"type": "array", "maxItems": model.MOST_TAGS, "uniqueItems": True, "items": _TAG}


def _object(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def _words(words: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return {"type": "string", "enum": list(words), **more}


def _named(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _terms(kind: str) -> dict[str, Any]:
    """Generators have a word for what is optional, and few for "one of these": that is said beside it."""
    rules = model.KINDS[kind]
    optional = {**dict.fromkeys(rules.optional, _DECIMAL), "time_in_force": _words(rules.times_in_force, default="DAY")}
    terms = _object(dict.fromkeys(rules.required, _DECIMAL), optional)
    alternatives = [[{"required": [name]} for name in names] for names in rules.one_of]
    return terms | ({"allOf": [{"oneOf": names} for names in alternatives]} if alternatives else {})


def _command(name: str, payload: str) -> dict[str, Any]:
    return _object({"type": _words((name,)), "payload": _named(payload)})


SPEC = {"oneOf": [_named(f"{kind}Spec") for kind in model.KINDS]}
CREATE_SPEC = {"oneOf": [*SPEC["oneOf"], *(_named(f"{kind}Spec") for kind in model.GROUPS)]}
SPEC_OR_NULL = {"oneOf": [*SPEC["oneOf"], {"type": "null"}]}
_CREATE = _object(
    {"symbol": _SYMBOL, "order_side": _words(model.ORDER_SIDES), "spec": CREATE_SPEC},
    {
        "route_strategy": _words(model.ROUTE_STRATEGIES, default="AUTO"),
        "client_id": _CLIENT_ID,
        "tags": _TAGS,
        "extended_hours": {"type": "boolean", "default": False},
    },
)
COMMAND = {"oneOf": [_named("CreateCommand"), _named("ReplaceCommand"), _named("CancelCommand")]}
SCHEMAS: Mapping[str, dict[str, Any]] = {
    "CreateCommand": _command("CREATE", "CreatePayload"),
    "CreatePayload": _CREATE,
    "ReplaceCommand": _command("REPLACE", "ReplacePayload"),
    "ReplacePayload": _object({"ref_intent_id": _REFERENCE, "spec": SPEC}),
    "CancelCommand": _command("CANCEL", "CancelPayload"),
    "CancelPayload": _object({"ref_intent_id": _REFERENCE}),
    **{f"{kind}Spec": _object({kind: _named(f"{kind}Order")}) for kind in model.KINDS},
    **{f"{kind}Order": _terms(kind) for kind in model.KINDS},
    **{f"{kind}Spec": _object({kind: _named(f"{kind}Orders")}) for kind in model.GROUPS},
    **{f"{kind}Orders": _object(dict.fromkeys(group.legs, SPEC)) for kind, group in model.GROUPS.items()},
}
"""What `COMMAND` and `SPEC` refer to. Whatever is an object has a name: generators invent worse ones."""
