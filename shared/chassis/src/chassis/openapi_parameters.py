"""The parameters of an operation of the OpenAPI document, in its path, its query and its headers."""

from collections.abc import Mapping
from typing import Any

Schemas = Mapping[str, Mapping[str, Any]]


def parameters(path: Schemas, query: Schemas, headers: Mapping[str, str]) -> list[dict[str, Any]]:
    """The schemas of those in path and query, and the meaning of headers."""
    return [
        *({"name": name, "in": "path", "required": True, "schema": schema} for name, schema in path.items()),
        *(_in_query(name, dict(schema)) for name, schema in query.items()),
        *(_in_header(name, meaning) for name, meaning in headers.items()),
    ]


def _in_query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    required = {"required": True} if schema.pop("required", False) else {}
    return {"name": name, "in": "query", **required, "schema": schema}


def _in_header(name: str, meaning: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}
