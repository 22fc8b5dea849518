"""Every reason for a stream to end or not to begin, as each transport says it: one table."""

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
    429: Code.RESOURCE_EXHAUSTED,
    500: Code.INTERNAL,
    503: Code.UNAVAILABLE,
}
STATUSES: Mapping[type[model.Ending], tuple[grpc.StatusCode, int]] = {
    model.BadAccountId: (Code.INVALID_ARGUMENT, 400),
    model.BadSubscription: (Code.INVALID_ARGUMENT, 400),
    model.BadPosition: (Code.INVALID_ARGUMENT, 400),
    model.OutOfRange: (Code.OUT_OF_RANGE, 400),
    model.CredentialEnded: (Code.UNAUTHENTICATED, 401),
    model.PermissionEnded: (Code.PERMISSION_DENIED, 403),
    model.WrongEnvironment: (Code.PERMISSION_DENIED, 403),
    model.AccountNotFound: (Code.NOT_FOUND, 404),
    model.TooManyStreams: (Code.RESOURCE_EXHAUSTED, 429),
    model.Stuck: (Code.RESOURCE_EXHAUSTED, 429),
    model.Draining: (Code.UNAVAILABLE, 503),
    model.Unverified: (Code.UNAVAILABLE, 503),
}
_HEADERS: Mapping[int, Mapping[str, str]] = {
    401: problems.unauthenticated().headers,
    429: {"Retry-After": "2"},
    503: problems.unavailable().headers,
}


@dataclass(frozen=True)
class Refusal:
    code: grpc.StatusCode
    status: int
    reason: str
    """The word for it in `code` of a problem and in the metrics."""
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(error: Exception) -> Refusal:
    """How to say it. What nobody expected is logged here, and told to nobody."""
    if isinstance(error, model.Ending):
        code, status = STATUSES[type(error)]
        return Refusal(code, status, problems.code_of(type(error)), str(error), _HEADERS.get(status, {}))
    if db.is_unavailable(error):
        log.warning("database_unavailable", error=type(error).__name__)
        error = problems.unavailable("The log cannot be read at the moment. Try again.")
    if not isinstance(error, problems.Problem):
        log.error("unexpected_error", exc_info=error)
        error = problems.Problem(500, detail="Something went wrong on our side.")
    code = CODES.get(error.status, Code.UNKNOWN)
    return Refusal(code, error.status, error.code, error.detail, error.headers)
