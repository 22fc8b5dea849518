"""How each operation of the OpenAPI document is called: with curl, the Python SDK and the TypeScript client.

curl and TypeScript follow from the example of the request. Calls of the SDK are `app.extensions["samples"]` of a
service, by operation; a test makes each of them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from flask import Flask

FORM = "application/x-www-form-urlencoded"
_CREDENTIALS = {"apiKey": "x-api-key: $TIP_KEY", "bearer": "authorization: Bearer $TIP_TOKEN"}


def calls_of(apps: Sequence[Flask]) -> dict[str, str]:
    return {name: call for app in apps for name, call in app.extensions.get("samples", {}).items()}


def add_samples(document: dict[str, Any], calls: Mapping[str, str]) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            samples = list(_samples(method.upper(), path, operation, calls.get(operation["operationId"])))
            operation["x-codeSamples"] = samples


def _samples(method: str, path: str, operation: dict[str, Any], call: str | None) -> Iterator[dict[str, str]]:
    yield {"lang": "Shell", "label": "curl", "source": _curl(method, path, operation)}
    if call:
        yield {"lang": "Python", "label": "Python", "source": f"client = tip.Client.from_env()\n{call}"}
    if FORM not in _content(operation):
        yield {"lang": "TypeScript", "label": "TypeScript", "source": _typescript(method, path, operation)}


def _content(operation: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = operation.get("requestBody", {}).get("content", {})
    return found


def _in_path(operation: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: str(item["example"]) for item in operation["parameters"] if item["in"] == "path"}


def _curl(method: str, path: str, operation: dict[str, Any]) -> str:
    kinds = [kind for requirement in operation["security"] for kind in requirement]
    credential = next((_CREDENTIALS[kind] for kind in ("apiKey", "bearer") if kind in kinds), None)
    credential = credential or (_CREDENTIALS["bearer"] if kinds else None)
    lines = [f'curl -X {method} "$TIP_URL{path.format(**_in_path(operation))}"']
    lines += [f'-H "{credential}"'] if credential else []
    for kind, content in _content(operation).items():
        body = urlencode(content["example"]) if kind == FORM else json.dumps(content["example"], ensure_ascii=False)
        lines += [f"-H 'content-type: {kind}'", f"-d '{body}'"]
    return " \\\n  ".join(lines)


def _typescript(method: str, path: str, operation: dict[str, Any]) -> str:
    options: dict[str, Any] = {}
    if values := _in_path(operation):
        options["params"] = {"path": values}
    for content in _content(operation).values():
        options["body"] = content["example"]
    shown = f", {json.dumps(options, indent=2, ensure_ascii=False)}" if options else ""
    return f'const {{ data, error }} = await client.{method}("{path}"{shown});'
