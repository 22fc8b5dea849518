"""An example of every request and answer of the OpenAPI document, made of examples of its fields.

A field has its example by name, or under `Schema.field`; a whole body under the name of its schema. Others follow from
the type, and `...` leaves a field out. A request shows what is required, an answer everything; under the id of an
operation are fields of its answer that differ from those of its schema. Services add their own tables as
`app.extensions["examples"]`. Ids are placeholders: a test replaces them and sends every request.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from flask import Flask

Values = Mapping[str, Any]

COMMON: Values = {
    "created_at": "2026-01-30T14:30:00.000000Z",
    "environment": "paper",
    "limit": 50,
    "name": "Momentum",
    "next_cursor": None,
    "order_side": "BUY",
    "reason": "Maintenance",
    "request_id": "req-7f3a",
    "symbol": "AAPL",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "updated_at": "2026-01-30T14:30:05.000000Z",
    "version": 1,
}
_OF_FORMAT = {
    "date-time": "2026-01-30T14:30:00.000000Z",
    "decimal": "10",
    "time": "09:30:00",
    "uri": "https://tip.example.com",
}
_OF_TYPE: Values = {"string": "string", "integer": 1, "number": 0.5, "boolean": False, "object": {}, "null": None}


def values_of(apps: Sequence[Flask]) -> dict[str, Any]:
    found = dict(COMMON)
    for app in apps:
        found |= app.extensions.get("examples", {})
    return found


def add_examples(document: dict[str, Any], values: Values) -> None:
    """Give every body in JSON or of a form, and every parameter that a request must have, an example."""
    maker = _Maker(document["components"]["schemas"], values)
    for path in document["paths"].values():
        for operation in path.values():
            _add_to(operation, maker)


class _Maker:
    def __init__(self, schemas: Mapping[str, Any], values: Values) -> None:
        self._schemas, self._values = schemas, values

    def body(self, schema: Mapping[str, Any], *, whole: bool) -> Any:
        return self._of(schema, "", "", whole=whole)

    def answer(self, schema: Mapping[str, Any], operation_id: str) -> Any:
        made, own = self.body(schema, whole=True), self._values.get(operation_id, {})
        return made | own if own else made

    def field(self, schema: Mapping[str, Any], owner: str, name: str, *, whole: bool = True) -> Any:
        if given := schema.get("examples"):
            return given[0]
        for key in (f"{owner}.{name}", name):
            if key in self._values:
                return self._values[key]
        return self._of(schema, owner, name, whole=whole)

    def _of(self, schema: Mapping[str, Any], owner: str, name: str, *, whole: bool) -> Any:
        if reference := schema.get("$ref"):
            owner = reference.rsplit("/", 1)[1]
            return (
                self._values[owner]
                if owner in self._values
                else self._of(self._schemas[owner], owner, name, whole=whole)
            )
        if alternatives := schema.get("oneOf") or schema.get("anyOf"):
            return self._of(alternatives[0], owner, name, whole=whole)
        if words := schema.get("enum"):
            return words[0]
        if schema.get("type") == "array" or "items" in schema:
            return [self._of(schema.get("items", {}), owner, name.removesuffix("s"), whole=whole)]
        if "properties" in schema:
            return self._object(schema, owner, whole=whole)
        return self._plain(schema, owner, name)

    def _object(self, schema: Mapping[str, Any], owner: str, *, whole: bool) -> dict[str, Any]:
        shown = schema["properties"] if whole else schema.get("required", ())
        found = {name: self.field(schema["properties"][name], owner, name, whole=whole) for name in shown}
        return {name: value for name, value in found.items() if value is not ...}

    def _plain(self, schema: Mapping[str, Any], owner: str, name: str) -> Any:
        if schema.get("format") == "uuid":
            return str(uuid5(NAMESPACE_URL, owner.lower() if name == "id" else name.removesuffix("_id")))
        kinds = schema.get("type", "object")
        kind = kinds if isinstance(kinds, str) else kinds[0]
        return _OF_FORMAT.get(schema.get("format", ""), schema.get("minimum") or _OF_TYPE[kind])


def _add_to(operation: dict[str, Any], maker: _Maker) -> None:
    for parameter in operation["parameters"]:
        if parameter.get("required"):
            parameter["example"] = maker.field(parameter["schema"], parameter["in"], parameter["name"])
    for content in operation.get("requestBody", {}).get("content", {}).values():
        content["example"] = maker.body(content["schema"], whole=False)
    for status, answer in operation["responses"].items():
        if int(status) < 400 and (content := answer.get("content", {}).get("application/json")):
            content["example"] = maker.answer(content["schema"], operation["operationId"])
