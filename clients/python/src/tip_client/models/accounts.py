"""Trading accounts, broker credentials, brokers, and the health of the outbox."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tip_client.words import CredentialStatus, CredentialTestStatus, Environment


@dataclass(frozen=True)
class Account:
    """A trading account."""

    id: str
    organization_id: str
    name: str
    broker: str
    environment: Environment
    broker_account_id: str | None
    time_zone: str
    disabled: bool
    disabled_reason: str | None
    created_at: datetime
    updated_at: datetime
    version: int
    closing: bool
    """It is being deleted, and refuses intents like a disabled one."""
    flatten_excess: bool
    """A market order closes what an order group has filled beyond what it was for."""


@dataclass(frozen=True)
class Credential:
    """A credential at a broker, without its secret."""

    id: str
    account_id: str
    organization_id: str
    broker: str
    label: str
    status: CredentialStatus
    fingerprint: str
    created_at: datetime
    updated_at: datetime
    version: int
    test_status: CredentialTestStatus | None = None
    """Of the test that was last requested; None if there was none of this secret."""
    tested_at: datetime | None = None


@dataclass(frozen=True)
class SecretPart:
    """A part of a secret as the broker wants it."""

    name: str
    title: str
    required: bool
    secret: bool
    longest: int
    pattern: str


@dataclass(frozen=True)
class Capabilities:
    """What a broker can do; anything else is refused when it is submitted."""

    kinds: Mapping[str, Any]
    replacement: str
    client_ids: str
    streams: bool
    quotes: bool
    executions: bool
    fractions: bool
    routing: bool
    symbol_pattern: str
    symbol_example: str
    calls_per_minute: int | None
    extended_hours: Mapping[str, Any] = field(default_factory=dict)
    """The order kinds, each with its times in force, that may trade outside the regular hours."""
    notional_orders: tuple[str, ...] = ()
    """The times in force of a Market order by its notional; empty if there are none."""
    shared_exits: bool = False
    """Whether two open orders may close the same position, as Bracket and OneCancelsOther need."""
    exit_pairs: tuple[str, ...] = ()
    """Where they may not: the times in force of a Limit and a Stop or StopLimit that cancel each other."""


@dataclass(frozen=True)
class Broker:
    """A broker that is installed."""

    name: str
    title: str
    environments: tuple[Environment, ...]
    needs_credential: bool
    is_simulated: bool
    credential: tuple[SecretPart, ...]
    capabilities: Capabilities


@dataclass(frozen=True)
class Brokers:
    data: tuple[Broker, ...]


@dataclass(frozen=True)
class FailedOutboxRow:
    """An outbox row that reached the attempt limit and is never tried again by itself."""

    id: int
    event_id: str
    event_type: str
    organization_id: str | None
    account_id: str | None
    credential_id: str | None
    attempts: int
    last_error: str | None
    explanation: str | None
    """What the error means, for people."""
    created_at: datetime
    failed_at: datetime | None
    redriven_as: int | None
    """The row that it was driven again as; None if it was not."""


@dataclass(frozen=True)
class OutboxEntry:
    """The rows of one status and event type."""

    status: str
    event_type: str
    count: int
    oldest_created_at: datetime
    max_attempts: int
    oldest_claimed_at: datetime | None


@dataclass(frozen=True)
class OutboxHealth:
    """How the accounts outbox is doing, for operators."""

    entries: tuple[OutboxEntry, ...]
    pending: int
    processing: int
    failed: int
    completed: int
    redriven: int
    """Of the failed, those that were driven again."""
    oldest_claim_at: datetime | None
    oldest_failed_at: datetime | None
    oldest_pending_at: datetime | None
