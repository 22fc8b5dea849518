"""Calls to a broker about one command, as the timeline of its intent shows them."""

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from tip_brokers.answers import reason
from tip_brokers.protocol import (
    BrokerError,
    CredentialRefused,
    NotSent,
    NotWritten,
    OutcomeUnknown,
    RateLimited,
    Refused,
)

_ORDERS = frozenset({"create", "replace"})
SENDS = _ORDERS | {"cancel"}


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
        """Names the row of the call. An order that the broker may have taken has one of its own; what is merely tried
        or queried again and again, and comes out alike, shares one. So does a cancel, which does nothing twice.
        """
        if self.verb in _ORDERS and self.result in _DONE:
            return f"{self.verb} {self.started_at.isoformat()}"
        why = hashlib.sha256((self.reason or "").encode()).hexdigest()[:16]
        return f"{self.verb} {self.action_id} {self.result} {why}"


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
        return result, reason(f"{error.code}: {error.message}")
    is_foreseen = isinstance(error, BrokerError) and str(error)
    return result, reason(error) if is_foreseen else type(error).__name__
