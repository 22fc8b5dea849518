"""Calls to a broker about one command, as the timeline of its intent shows them."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from tip_brokers.protocol import (
    BrokerError,
    CredentialRefused,
    NotSent,
    NotWritten,
    OutcomeUnknown,
    RateLimited,
    Refused,
)

_LONGEST_REASON = 300
SENDS = frozenset({"create", "replace", "cancel"})


class CallResult(StrEnum):
    """ABSENT: the broker does not have what it was queried for. NOT_SENT: certainly nothing was done."""

    ANSWERED = "ANSWERED"
    ABSENT = "ABSENT"
    REFUSED = "REFUSED"
    RATE_LIMITED = "RATE_LIMITED"
    CREDENTIAL_REFUSED = "CREDENTIAL_REFUSED"
    NOT_SENT = "NOT_SENT"
    UNKNOWN = "UNKNOWN"


_DONE = frozenset({CallResult.ANSWERED, CallResult.REFUSED, CallResult.UNKNOWN})


class BrokerCall(NamedTuple):
    action_id: UUID
    verb: str
    started_at: datetime
    """By the database's clock, as well as the process knows it."""
    milliseconds: float
    result: CallResult
    reason: str | None = None

    @property
    def key(self) -> str:
        """Names the row of the call. What the broker may have acted on has one of its own; what is merely tried or
        queried again and again, and comes out alike, shares one.
        """
        if self.verb in SENDS and self.result in _DONE:
            return f"{self.verb} {self.started_at.isoformat()}"
        return f"{self.verb} {self.action_id} {self.result} {self.reason or ''}"


_RESULTS: tuple[tuple[type[Exception], CallResult], ...] = (
    (NotWritten, CallResult.NOT_SENT),
    (CredentialRefused, CallResult.CREDENTIAL_REFUSED),
    (RateLimited, CallResult.RATE_LIMITED),
    (NotSent, CallResult.NOT_SENT),
    (Refused, CallResult.REFUSED),
    (OutcomeUnknown, CallResult.UNKNOWN),
)


def result_of(error: Exception) -> tuple[CallResult, str | None]:
    """What a failed call came to, and why. What nobody foresaw proves nothing."""
    result = next((result for kind, result in _RESULTS if isinstance(error, kind)), CallResult.UNKNOWN)
    if isinstance(error, Refused):
        return result, f"{error.code}: {error.message}"[:_LONGEST_REASON]
    is_foreseen = isinstance(error, BrokerError) and str(error)
    return result, str(error)[:_LONGEST_REASON] if is_foreseen else type(error).__name__
