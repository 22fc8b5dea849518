"""The nouns of accounts and what is true of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

ENVIRONMENTS = ("paper", "live")
CREDENTIAL_STATUSES = ("pending", "active", "invalid", "revoked")
TEST_STATUSES = ("pending", "accepted", "refused", "failed")

ACCOUNT_CREATED = "account.created"
ACCOUNT_UPDATED = "account.updated"
ACCOUNT_DELETED = "account.deleted"
CREDENTIAL_CREATED = "credential.created"
CREDENTIAL_UPDATED = "credential.updated"
CREDENTIAL_DELETED = "credential.deleted"
CREDENTIAL_VALID = "credential.valid"  # published by intents: a broker accepted the credential
CREDENTIAL_INVALID = "credential.invalid"  # and this: it refused it
CREDENTIAL_TESTED = "credential.tested"  # and this: what came of a test that was requested
CREDENTIAL_EVENTS = (CREDENTIAL_CREATED, CREDENTIAL_UPDATED, CREDENTIAL_DELETED)
EVENT_TYPES = (ACCOUNT_CREATED, ACCOUNT_UPDATED, ACCOUNT_DELETED, *CREDENTIAL_EVENTS)
OUTBOX_STATUSES = ("pending", "processing", "completed", "failed")


class NotFound(Exception):
    """There is nothing here that you may see."""


class WrongEnvironment(Exception):
    """The API key is for the other environment."""

    code = "forbidden"


class OutsideBounds(Exception):
    """The API key is bounded to accounts that exist: it would not see the new one."""

    code = "forbidden"


class PreconditionFailed(Exception):
    """The resource has another version."""


class LimitReached(Exception):
    """There are as many of these as there may be. Delete one first."""


class OpenIntents(Exception):
    """The account has open intents, or an order that may still be open at the broker. Cancel them first, or delete it
    with cancel_open=true."""


class AccountClosing(Exception):
    """The account is being deleted, which cannot be taken back. Create another one."""


class RehearsalOff(Exception):
    """Live accounts at the paper broker are switched off here."""


class NotInternal(Exception):
    """Only admins of organizations that are configured as internal may do this."""

    code = "forbidden"


class QueueUnreadable(Exception):
    """The outbox could not be read."""

    code = "internal"


@dataclass(frozen=True)
class Account:
    id: UUID
    organization_id: UUID
    name: str
    broker: str
    environment: str
    broker_account_id: str | None
    time_zone: str
    disabled: bool
    disabled_reason: str | None
    created_at: datetime
    updated_at: datetime
    version: int
    closing_at: datetime | None = None
    closing_operation_id: UUID | None = None
    """The bulk operation that cancels its open intents; None where nothing is to be canceled."""
    flatten_excess: bool = False
    """Whether the platform closes what an order group has filled beyond what it was for."""

    @property
    def closing(self) -> bool:
        """Whether it is being deleted."""
        return self.closing_at is not None


@dataclass(frozen=True)
class NewAccount:
    name: str
    broker: str
    environment: str
    broker_account_id: str | None = None
    time_zone: str = "UTC"
    flatten_excess: bool = False


@dataclass(frozen=True)
class Credential:
    """A broker credential as it may be shown: never its secret."""

    id: UUID
    account_id: UUID
    organization_id: UUID
    broker: str
    label: str
    status: str
    fingerprint: str
    created_at: datetime
    updated_at: datetime
    version: int
    test_status: str | None
    """Of the test that was last requested for this secret."""
    tested_at: datetime | None


@dataclass(frozen=True)
class Custody:
    """Which versions of a credential's secret are where; what is left to do follows from it alone."""

    credential_id: UUID
    account_id: UUID
    organization_id: UUID
    version: int
    vault_version: int | None
    destroyed_through: int
    deleted: bool

    def outdated(self) -> range:
        """The versions that the vault should no longer have."""
        end = self.version + 1 if self.deleted else (self.vault_version or 1)
        return range(self.destroyed_through + 1, end)


@dataclass(frozen=True)
class Unopened:
    """A sealed secret that no key given opens."""

    credential_id: UUID
    version: int
    reason: str


@dataclass(frozen=True)
class Rewrapped:
    """What came of a change of key; it is finished when nothing is left."""

    count: int
    left: tuple[Unopened, ...]


@dataclass(frozen=True)
class FailedRow:
    """An outbox row that reached the attempt limit, without its payload."""

    id: int
    event_id: UUID
    event_type: str
    organization_id: str | None
    account_id: str | None
    credential_id: str | None
    attempts: int
    last_error: str | None
    explanation: str | None
    created_at: datetime
    failed_at: datetime | None
    redriven_as: int | None


@dataclass(frozen=True)
class HealthEntry:
    status: str
    event_type: str
    count: int
    oldest_created_at: datetime
    max_attempts: int
    oldest_claimed_at: datetime | None
    redriven: int = 0


@dataclass(frozen=True)
class Health:
    """The whole queue in numbers; everything else follows from the entries."""

    entries: tuple[HealthEntry, ...]

    @property
    def pending(self) -> int:
        return self._total("pending")

    @property
    def processing(self) -> int:
        return self._total("processing")

    @property
    def failed(self) -> int:
        return self._total("failed")

    @property
    def completed(self) -> int:
        return self._total("completed")

    @property
    def redriven(self) -> int:
        """Of those that failed, how many were driven again: they need no answer any more."""
        return sum(entry.redriven for entry in self.entries)

    @property
    def oldest_claim_at(self) -> datetime | None:
        claims = [entry.oldest_claimed_at for entry in self.entries if entry.status == "processing"]
        return min((claim for claim in claims if claim is not None), default=None)

    @property
    def oldest_failed_at(self) -> datetime | None:
        return self._oldest("failed")

    @property
    def oldest_pending_at(self) -> datetime | None:
        return self._oldest("pending")

    def _total(self, status: str) -> int:
        return sum(entry.count for entry in self.entries if entry.status == status)

    def _oldest(self, status: str) -> datetime | None:
        return min((entry.oldest_created_at for entry in self.entries if entry.status == status), default=None)


def check_environment(key_environment: str | None, environment: str) -> None:
    """A key touches accounts of its own environment only; callers without one are not bound by it."""
    if key_environment is not None and key_environment != environment:
        raise WrongEnvironment


def check_version(expected: int | None, actual: int) -> None:
    if expected is not None and expected != actual:
        raise PreconditionFailed


def check_rehearsal(new: NewAccount, *, simulated: bool, allowed: bool) -> None:
    if simulated and new.environment == "live" and not allowed:
        raise RehearsalOff


def check_limit(count: int, most: int) -> None:
    """`count` includes the new one."""
    if count > most:
        raise LimitReached


def really_changed(account: Account, changes: Mapping[str, Any]) -> bool:
    return any(getattr(account, name) != value for name, value in changes.items())
