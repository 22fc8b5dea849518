"""Whether and when a request is sent again, and what its caller learns in the end. Pure: time and chance are given."""

from dataclasses import dataclass
from typing import Any

from tip_client.errors import ApiError, NotFound, OutcomeUnknown, TipError, UnexpectedAnswer
from tip_client.request import Repeat, Request

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 2.0
_BEFORE_THE_KEY = frozenset({401, 403, 404})
"""Refusals that come before the idempotency key is looked up: they say nothing of the attempts before."""


@dataclass
class Attempts:
    """The attempts at one request, until its deadline."""

    request: Request[Any]
    deadline: float
    request_id: str | None = None
    count: int = 0
    in_doubt: bool = False
    """Whether an attempt may have been done without being answered."""

    def delay_after(self, failure: TipError, now: float, chance: float) -> float:
        """Seconds to wait before the next attempt; raises what the caller is to see when there is none."""
        doubted_before, self.count = self.in_doubt, self.count + 1
        self.in_doubt = doubted_before or failure.may_have_been_done
        may_repeat = self.request.repeat is not Repeat.NEVER or not self.in_doubt
        delay = backoff(self.count, failure.retry_after, chance)
        if failure.is_transient and may_repeat and now + delay <= self.deadline:
            return delay
        verdict = self._verdict(failure, doubted_before)
        if verdict is failure:
            raise failure
        raise verdict from failure

    def unreadable(self, failure: UnexpectedAnswer) -> TipError:
        """What to raise for an answer that is none: of a command, that nobody knows what became of it."""
        return self._unknown(failure) if self.request.changes else failure

    def settles(self, failure: TipError) -> bool:
        """Whether the failure says that an earlier attempt was done: what was to be deleted is not there any more."""
        return self.in_doubt and self.request.method == "DELETE" and isinstance(failure, NotFound)

    def _verdict(self, failure: TipError, doubted_before: bool) -> TipError:
        if not self.request.changes or not self.in_doubt:
            return failure
        if isinstance(failure, ApiError) and not failure.is_transient and not failure.may_have_been_done:
            settled = not doubted_before or failure.status not in _BEFORE_THE_KEY
            if settled:
                return failure
        return self._unknown(failure)

    def _unknown(self, failure: TipError) -> OutcomeUnknown:
        message = f"It is not known whether it was done: {failure}"
        key = self.request.idempotency_key
        return OutcomeUnknown(message, idempotency_key=key, request_id=self.request_id)


def backoff(count: int, retry_after: float | None, chance: float) -> float:
    """Ever longer, spread by chance, and never shorter than the platform wishes."""
    longest = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(count - 1, 16))
    return (retry_after or 0.0) + longest * (0.5 + chance / 2)
