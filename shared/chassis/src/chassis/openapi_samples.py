"""How each operation of the OpenAPI document is called: with curl, the Python SDK and the TypeScript client.

curl and TypeScript follow from the example of the request. Calls of the SDK are `app.extensions["samples"]` of a
service, by operation; a test runs each of them. The TypeScript client reads JSON: what answers with a page or a stream
of events has no sample of it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from flask import Flask

FORM = "application/x-www-form-urlencoded"
JSON, JSON_LINES = "application/json", "application/jsonl"
_IN_HEADER = {
    "key": "x-api-key: $TIP_KEY",
    "token": "authorization: Bearer $TIP_TOKEN",  # the reader's variable - no secret # nosec B105
}
_IN_TYPESCRIPT = {
    "key": "{ key: process.env.TIP_KEY! }",
    "token": "{ token: process.env.TIP_TOKEN! }",  # the reader's variable - no secret # nosec B105
}


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
        yield {"lang": "Python", "label": "Python", "source": _python(call)}
    if FORM not in _content(operation) and _answers(operation) <= {JSON, JSON_LINES}:
        yield {"lang": "TypeScript", "label": "TypeScript", "source": _typescript(method, path, operation)}


def _content(operation: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = operation.get("requestBody", {}).get("content", {})
    return found


def _answers(operation: dict[str, Any]) -> set[str]:
    """The media types of answers that succeed; none if they have no body."""
    done = [answer for status, answer in operation["responses"].items() if int(status) < 400]
    return {kind for answer in done for kind in answer.get("content", {})}


def _given(operation: dict[str, Any], place: str) -> dict[str, str]:
    """The parameters there that a request must have."""
    wanted = [item for item in operation["parameters"] if item["in"] == place and item.get("required")]
    return {item["name"]: str(item["example"]) for item in wanted}


def _credential(operation: dict[str, Any]) -> str:
    """A key where one will do, or where none is needed."""
    kinds = {kind for requirement in operation["security"] for kind in requirement}
    return "key" if "apiKey" in kinds or not kinds else "token"


def _curl(method: str, path: str, operation: dict[str, Any]) -> str:
    query = f"?{urlencode(values)}" if (values := _given(operation, "query")) else ""
    lines = [f'curl -X {method} "$TIP_URL{path.format(**_given(operation, "path"))}{query}"']
    lines += [f'-H "{_IN_HEADER[_credential(operation)]}"'] if operation["security"] else []
    for kind, content in _content(operation).items():
        body = urlencode(content["example"]) if kind == FORM else json.dumps(content["example"], ensure_ascii=False)
        lines += [f"-H 'content-type: {kind}'", f"-d '{body}'"]
    return " \\\n  ".join(lines)


def _python(call: str) -> str:
    imports = ["from datetime import time", ""] if re.search(r"\btime\(", call) else []
    return "\n".join([*imports, "import tip_client as tip", "", "client = tip.Client.from_env()", call])


def _typescript(method: str, path: str, operation: dict[str, Any]) -> str:
    options: dict[str, Any] = {}
    if values := {place: given for place in ("path", "query") if (given := _given(operation, place))}:
        options["params"] = values
    for content in _content(operation).values():
        options["body"] = content["example"]
    if JSON_LINES in _answers(operation):
        options["parseAs"] = "stream"
    shown = f", {json.dumps(options, indent=2, ensure_ascii=False)}" if options else ""
    client = f"createTipClient(process.env.TIP_URL!, {_IN_TYPESCRIPT[_credential(operation)]})"
    call = f'const {{ data, error }} = await client.{method}("{path}"{shown});'
    return "\n".join(['import { createTipClient } from "tip-client";', "", f"const client = {client};", call])
