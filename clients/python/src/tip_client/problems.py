"""An answer that is no success, as an exception: one table."""

import json
from collections.abc import Mapping
from typing import Any

from tip_client import errors
from tip_client.errors import ApiError

_BY_CODE: Mapping[str, type[ApiError]] = {
    "batch_rejected": errors.BatchRejected,
    "broker_cannot": errors.BrokerCannot,
    "client_id_taken": errors.ClientIdTaken,
    "control_rejected": errors.ControlRejected,
    "entitlement_required": errors.EntitlementRequired,
    "idempotency_key_reused": errors.IdempotencyKeyReused,
    "idempotent_request_in_flight": errors.RequestInFlight,
    "intent_busy": errors.IntentBusy,
    "intent_terminal": errors.IntentTerminal,
    "limit_reached": errors.LimitReached,
    "out_of_range": errors.PositionOutOfRange,
    "overloaded": errors.Overloaded,
}
_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    408: errors.Unavailable,
    409: errors.Conflict,
    412: errors.PreconditionFailed,
    429: errors.RateLimited,
    502: errors.Unavailable,
    503: errors.Unavailable,
    504: errors.Unavailable,
}
NOTHING_WAS_WRITTEN = frozenset({"unavailable", "overloaded"})
"""Codes of a 503 by which the platform promises that."""


def problem_of(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The exception for an answer. One that is no problem document, of a proxy or in plain text, has no known code."""
    document = _document(body)
    code = document.pop("code", None)
    detail = document.pop("detail", None) or document.pop("error_description", None)
    shown = _plain_text(headers, body) if detail is None else str(detail)
    error = error_of(status, str(code or document.get("error") or "error"), shown, document)
    error.request_id = document.get("request_id") or headers.get("x-request-id")
    error.retry_after = _seconds(headers.get("retry-after"))
    return error


def error_of(status: int, code: str, detail: str = "", members: Mapping[str, Any] | None = None) -> ApiError:
    fallback = errors.ServerError if status >= 500 else errors.InvalidRequest
    error = _BY_CODE.get(code, _BY_STATUS.get(status, fallback))(status, code, detail, members)
    if status in (502, 503, 504):
        error.may_have_been_done = status != 503 or code not in NOTHING_WAS_WRITTEN
    return error


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _plain_text(headers: Mapping[str, str], body: bytes) -> str:
    is_text = headers.get("content-type", "").startswith("text/plain")
    return body[:500].decode("utf-8", "replace") if is_text else ""


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() else None
