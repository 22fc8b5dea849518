"""What is known when a command is decided, as one read found it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import control_rules
from intents.model.actions import Intent
from tip_brokers.capabilities import Capabilities


class Account(NamedTuple):
    """`can` is what its broker can do; None if no broker of that name is installed."""

    id: UUID
    organization_id: UUID
    environment: str
    broker: str = ""
    can: Capabilities | None = None


class PriorResult(NamedTuple):
    """The result of an earlier request with the same idempotency key."""

    request_hash: bytes
    intent_id: UUID
    action_id: UUID
    state: Mapping[str, Any]
    created: bool
    """Whether it made the action, or was a CANCEL of what was being cancelled already."""


@dataclass(frozen=True, slots=True)
class SubmitFacts:
    """Everything a decision needs, as one read found it. `now` is the database's clock."""

    now: datetime
    account: Account | None
    intent: Intent | None = None
    prior: PriorResult | None = None
    controls: control_rules.Facts | None = None
    has_order_facts: bool = False
    """Whether `controls` has what limits and the state REDUCING count."""
    last_sequence: int | None = None
    """Where the account's log ended when that was read; None if there is no log yet."""
    client_id_holder: UUID | None = None
    """The intent of the account that has the command's client_id."""
    key_day_ends_at: datetime | None = None
    """When the day ends in which something was last counted of the budget of the caller's API key; None if never."""
    backlog: str | None = None
    """Whose commands wait too long to be sent: the account's, or the organization's at the broker."""
