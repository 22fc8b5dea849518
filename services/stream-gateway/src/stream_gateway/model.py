"""What is streamed, to whom, and why a stream ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

EVENT_TYPES = ("BROKER_ORDER", "BROKER_POSITION", "BROKER_TRADE", "INTENT_ACTION", "CONTROL", "ACCOUNT", "REFUSAL")

MAX_SEQUENCE = 2**63 - 1
"""What the log can count; a greater number in a request is in the future all the same."""


class Ending(Exception):
    """Why a stream ends, or does not begin. The first line of the docstring is sent to the subscriber."""

    def __str__(self) -> str:
        return super().__str__() or (type(self).__doc__ or "").strip().split("\n")[0]


class BadAccountId(Ending):
    """The trading account id is not a UUID."""


class BadSubscription(Ending):
    """Subscribe to at least one event type, and only to those that exist."""

    def __init__(self) -> None:
        names = ", ".join(f"EVENT_TYPE_{name}" for name in EVENT_TYPES)
        super().__init__(f"Subscribe to at least one event type, and only to those that exist: {names}.")


class BadPosition(Ending):
    """The sequence to resume after is not a number."""


class AccountNotFound(Ending):
    """There is nothing here that you may see."""


class OutOfRange(Ending):
    """The sequence to resume after is in the future, or older than what is kept."""


class EpochEnded(Ending):
    """The log was restored and its old numbers are over. Read the account anew, then subscribe without resuming."""


class TooManyStreams(Ending):
    """Too many streams are open or waiting to be let in."""


class Stuck(Ending):
    """The stream was not read for too long. Resume after the last sequence received."""


class Draining(Ending):
    """The server is going away. Resume after the last sequence received."""


class CredentialEnded(Ending):
    """The credential has expired or was revoked."""


class PermissionEnded(Ending):
    """The role, permission or scope for this stream was taken away."""


class Unverified(Ending):
    """The caller cannot be verified at the moment. Resume after the last sequence received."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of an account's log."""

    account_id: UUID
    sequence: int
    event_id: UUID
    type: str
    occurred_at: datetime
    traceparent: str | None
    payload: Mapping[str, Any]
    previous_hash: str
    hash: str


@dataclass(frozen=True, slots=True)
class Account:
    """A trading account and how far its log has come, in which epoch."""

    id: UUID
    organization_id: UUID
    head: int
    epoch: str


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a subscriber requests."""

    account_id: UUID
    types: frozenset[int]
    resume_after: int | None = None
    resume_epoch: str | None = None


def begin(subscription: Subscription, account: Account) -> int:
    """The sequence the stream begins after: where it is resumed, else now."""
    if subscription.resume_epoch not in (None, account.epoch):
        raise EpochEnded
    if subscription.resume_after is None:
        return account.head
    if subscription.resume_after > account.head:
        raise OutOfRange
    return subscription.resume_after


def check_retention(next_occurred_at: datetime | None, now: datetime, retention_days: int) -> None:
    """Refuse to resume where the next event is gone, or too old to be relied upon."""
    if next_occurred_at is None:
        raise OutOfRange
    if retention_days and next_occurred_at < now - timedelta(days=retention_days):
        raise OutOfRange
