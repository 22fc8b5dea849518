"""A command that a caller, or the platform itself, wants done."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

import control_rules
from intents.model.actions import Actor
from intents.model.orders import Command, HoldToTotal


class Caller(Protocol):
    """What deciding needs to know of the caller."""

    @property
    def organization_id(self) -> UUID | None: ...
    @property
    def environment(self) -> str | None: ...
    @property
    def entitlements(self) -> frozenset[str]: ...


class Owner(NamedTuple):
    """The organization of an account as the caller of its own accepted commands, when they are sent."""

    organization_id: UUID | None
    environment: str | None
    entitlements: frozenset[str]


class IdempotencyKey(NamedTuple):
    """A request with the same key and hash is done once."""

    key: str
    request_hash: bytes


@dataclass(frozen=True, slots=True)
class Submission:
    """`caller` is None for the platform itself, which needs no entitlement."""

    account_id: UUID
    command: Command | HoldToTotal
    actor: Actor
    caller: Caller | None
    idempotency_key: IdempotencyKey | None = None
    dry_run: bool = False
    reason: str | None = None
    traceparent: str | None = None
    """The trace context propagated downstream."""
    request_id: str | None = None
    reduce_only: bool = False
    """Whether the order may, with the other open orders of its side, at most close the position."""
    key_bounds: control_rules.KeyBounds | None = None
    """What the API key that sends it is bounded to, if it is."""
