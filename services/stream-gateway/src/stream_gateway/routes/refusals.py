"""Every reason for a stream to end or not to begin, as each transport reports it: one table."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc

from chassis import db, logs, problems
from stream_gateway import model

log = logs.get(__name__)

Code = grpc.StatusCode

CODES: Mapping[int, grpc.StatusCode] = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    408: Code.DEADLINE_EXCEEDED,
    429: Code.RESOURCE_EXHAUSTED,
    500: Code.INTERNAL,
    503: Code.UNAVAILABLE,
}
# The third is the `code` of a problem: the same as at every other endpoint.
STATUSES: Mapping[type[model.Ending], tuple[grpc.StatusCode, int, str]] = {
    model.BadAccountId: (Code.INVALID_ARGUMENT, 400, "bad_id"),
    model.BadSubscription: (Code.INVALID_ARGUMENT, 400, "bad_subscription"),
    model.BadPosition: (Code.INVALID_ARGUMENT, 400, "bad_position"),
    model.OutOfRange: (Code.OUT_OF_RANGE, 400, "out_of_range"),
    model.EpochEnded: (Code.OUT_OF_RANGE, 400, "out_of_range"),
    model.CredentialEnded: (Code.UNAUTHENTICATED, 401, "unauthenticated"),
    model.PermissionEnded: (Code.PERMISSION_DENIED, 403, "forbidden"),
    model.AccountNotFound: (Code.NOT_FOUND, 404, "not_found"),
    model.TooManyStreams: (Code.RESOURCE_EXHAUSTED, 429, "too_many_streams"),
    model.Stuck: (Code.RESOURCE_EXHAUSTED, 429, "stuck"),
    model.Draining: (Code.UNAVAILABLE, 503, "unavailable"),
    model.Unverified: (Code.UNAVAILABLE, 503, "unavailable"),
}
_HEADERS: Mapping[int, Mapping[str, str]] = {
    401: problems.unauthenticated().headers,
    429: {"Retry-After": "2"},
    503: problems.unavailable().headers,
}


@dataclass(frozen=True)
class Refusal:
    rpc_code: grpc.StatusCode
    status: int
    code: str
    """Of a problem."""
    reason: str
    """Its label in the metrics, and in the `end` of Server-Sent Events."""
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(error: Exception) -> Refusal:
    """How to report the error. An unexpected one is logged here and its cause is not disclosed."""
    if isinstance(error, model.Ending):
        rpc_code, status, code = STATUSES[type(error)]
        reason = problems.code_of(type(error))
        return Refusal(rpc_code, status, code, reason, str(error), _HEADERS.get(status, {}))
    if db.is_unavailable(error):
        log.warning("database_unavailable", **db.log_fields(error))
        error = problems.unavailable("The log cannot be read at the moment. Try again.")
    if not isinstance(error, problems.Problem):
        log.error("unexpected_error", exc_info=error)
        error = problems.Problem(500, detail="Something went wrong on our side.")
    rpc_code = CODES.get(error.status, Code.UNKNOWN)
    return Refusal(rpc_code, error.status, error.code, error.code, error.detail, error.headers)
