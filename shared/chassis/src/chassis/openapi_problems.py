"""Which problems an operation of the OpenAPI document answers with: those that follow from its form, and its own."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from chassis.principals import Alternative, Kind
from chassis.problem_types import TYPES
from chassis.problems import CODES

PROBLEM_JSON = "application/problem+json"
_ALSO_OF_STATUS: Mapping[int, tuple[str, ...]] = {400: ("unknown_query",), 429: ("too_many_requests",)}
_OF_STATUS: Mapping[str, tuple[str, ...]] = {
    str(status): (code, *_ALSO_OF_STATUS.get(status, ()))
    for status, code in CODES.items()
    if status != 409  # of which a route names its own
}
_OF_CALLERS = {"unauthenticated", "forbidden", "not_found"}
"""Not where no credential is needed: there a route names its own."""
_OF_PARAMETER: Mapping[str, str] = {
    "limit": "bad_limit",
    "next_cursor": "bad_cursor",
    "dry_run": "bad_dry_run",
    "cancel_open": "bad_cancel_open",
    "time_window": "bad_time_window",
    "from": "bad_time",
    "to": "bad_time",
    "Idempotency-Key": "bad_idempotency_key",
}


def name_problems(
    operation: dict[str, Any], alternatives: tuple[Alternative, ...], own: Iterable[str], *, writes: bool
) -> None:
    """Say of every answer which codes it may have."""
    codes = {*own, *_of_form(operation, alternatives, writes=writes)}
    without = set() if alternatives else _OF_CALLERS
    for status, answer in operation["responses"].items():
        answer["description"] = _phrase(status)
        if PROBLEM_JSON in answer.get("content", {}):
            usual = [code for code in _OF_STATUS.get(status, ()) if code not in without]
            found = [*usual, *sorted(code for code in codes if int(status) in TYPES[code].statuses)]
            answer["x-problem-codes"] = found
            answer["description"] = f"{_phrase(status)[:-1]}: {', '.join(f'`{code}`' for code in found)}."


def _phrase(status: str) -> str:
    return f"{HTTPStatus(int(status)).phrase}."


def _of_form(operation: dict[str, Any], alternatives: tuple[Alternative, ...], *, writes: bool) -> set[str]:
    parameters = operation["parameters"]
    places = {parameter["in"] for parameter in parameters}
    found = {_OF_PARAMETER[parameter["name"]] for parameter in parameters if parameter["name"] in _OF_PARAMETER}
    wanted = {
        "two_credentials": bool(alternatives),
        "organization_required": any(_names_organization(alternative) for alternative in alternatives),
        "repeated_query": "query" in places,
        "bad_id": any(
            parameter["schema"].get("format") == "uuid" for parameter in parameters if parameter["in"] == "path"
        ),
        "malformed_json": "application/json" in operation.get("requestBody", {}).get("content", {}),
        "outcome_unknown": writes,
    }
    return found | {code for code, is_possible in wanted.items() if is_possible}


def _names_organization(alternative: Alternative) -> bool:
    return alternative.kind is Kind.SERVICE_ACCOUNT and alternative.organization
