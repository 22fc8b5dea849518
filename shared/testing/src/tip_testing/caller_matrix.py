"""Who may call what: a service's table of callers and statuses, compared with its routing table and its answers.

The table itself stands in the tests of each service, written by hand from the specification.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

Headers = Mapping[str, str]
Endpoint = tuple[str, str]
"""Method and path with `{names}`."""


@dataclass(frozen=True)
class Row:
    """One endpoint: what each caller gets, and a request to try it with."""

    method: str
    path: str
    expected: Mapping[str, int]
    request: Callable[[], Mapping[str, Any]]
    """The arguments of `client.open`; called again whenever an answer was no refusal, which may have used it up."""
    problems: bool = True
    """Whether its errors are problem documents, as nearly all are."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def template(rule: str) -> str:
    """A path of the routing table as the documents write it: `<uuid:account_id>` is `{account_id}`."""
    return re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule)


def endpoints(app: Flask) -> set[Endpoint]:
    """Every endpoint that `@allow` or `@anyone` guards; the pages for operations have neither."""
    return {
        (method, template(rule.rule))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if hasattr(app.view_functions[rule.endpoint], "alternatives")
    }


def uncovered(app: Flask, rows: Iterable[Row]) -> set[Endpoint]:
    """Endpoints that no row is about, and rows about no endpoint."""
    return endpoints(app) ^ {(row.method, row.path) for row in rows}


def differences(client: FlaskClient, headers: Callable[[str], Headers], row: Row) -> dict[str, str]:
    """By caller, how the answer differs from the row; `headers` are those of a caller."""
    found, request = {}, row.request()
    for caller, expected in row.expected.items():
        answer = client.open(method=row.method, headers=headers(caller), **request)
        if difference := _difference(answer, expected, row.problems):
            found[caller] = difference
        if answer.status_code < 400 and row.method != "GET":  # what was only read is still there
            request = row.request()
    return found


def _difference(answer: TestResponse, expected: int, problems: bool) -> str | None:
    if answer.status_code != expected:
        return f"expected {expected}, got {answer.status_code}: {answer.text}"
    if problems and expected >= 400 and answer.content_type != "application/problem+json":
        return f"{expected} as {answer.content_type}"
    if problems and expected == 401 and "WWW-Authenticate" not in answer.headers:
        return "401 without WWW-Authenticate"
    return None
