"""The headers of answers in the OpenAPI document: what each means, and which answer has which."""

from collections.abc import Collection, Iterator
from typing import Any

_MEANINGS = {
    "X-Request-Id": "Names the request in logs, problems and the timeline of an order.",
    "ETag": "The version of what is answered; send it as If-Match to change only this version.",
    "Location": "Where the new thing is.",
    "Idempotent-Replayed": "`true` if this is the answer to an earlier request with the same Idempotency-Key.",
    "Retry-After": "Seconds after which the same request may succeed.",
    "WWW-Authenticate": "Which credential is expected.",
    "RateLimit": "What is left of the quota, and when it is full again.",
    "RateLimit-Policy": "The quota.",
}
_ALWAYS_THERE = ("X-Request-Id", "ETag")
_TO_WAIT_FOR = (429, 503)


def components() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, meaning in _MEANINGS.items():
        yield name, {"description": meaning, "required": name in _ALWAYS_THERE, "schema": {"type": "string"}}


def of_answer(status: int, schema: Any, of_success: Collection[str], *, is_counted: bool) -> dict[str, dict[str, str]]:
    """By name. `of_success` are further ones when it succeeds; `is_counted`: the request is one of a quota."""
    given = {
        "X-Request-Id": True,
        "ETag": status < 300 and "version" in getattr(schema, "_declared_fields", ()),
        "Location": status < 300 and schema is not None and (status == 201 or "Location" in of_success),
        "Idempotent-Replayed": status < 300 and "Idempotent-Replayed" in of_success,
        "Retry-After": status in _TO_WAIT_FOR,
        "WWW-Authenticate": status == 401,
        "RateLimit": is_counted,
        "RateLimit-Policy": is_counted,
    }
    return {name: {"$ref": f"#/components/headers/{name}"} for name, is_given in given.items() if is_given}
