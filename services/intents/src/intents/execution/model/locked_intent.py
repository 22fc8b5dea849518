"""An intent under lock with everything that settling has to know of it, and what is to be written of it."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from intents.brokers import OPEN, OrderStatus
from intents.execution.client_order_id import is_duplicate
from intents.model import Intent, Spec

ENDED = frozenset(OrderStatus) - OPEN
STARTED = "STARTED"
"""The status of an order from before it is sent until the broker has shown it."""
MISSING = "MISSING"
"""The status of an order that may have been sent, was not found at the broker, and was given up."""


@dataclass(frozen=True)
class Patience:
    """When an unknown outcome is asked about: first after a while, then again and again."""

    ask_after_seconds: float = 5.0
    ask_every_seconds: float = 2.0
    look_again_seconds: float = 0.25


@dataclass(slots=True)
class BrokerOrder:
    """An order of the intent, as we know it."""

    name: str
    """Its client order id; a second order under the same client order id has the broker's id behind it."""
    action_sequence: int
    broker_order_id: str | None
    status: str
    executions: set[str]
    filled_quantity: Decimal
    executed_quantity: Decimal
    filled_value: Decimal
    quantity: Decimal | None = None
    credential: str | None = None
    unwanted: bool = False
    """Open at the broker although the intent does not ask for it: to be canceled by the system."""
    changed: bool = False

    @property
    def is_duplicate(self) -> bool:
        return is_duplicate(self.name)

    @property
    def is_open(self) -> bool:
        """Whether something may still be filled of it."""
        whole = self.quantity is not None and self.filled_quantity >= self.quantity
        return self.status in OPEN and not whole


@dataclass(frozen=True, slots=True)
class Command:
    """The earliest action of the intent that is not settled."""

    id: UUID
    sequence: int
    type: str
    spec: Spec | None


@dataclass(slots=True)
class Held:
    """An intent under lock, its orders, and what is to be written of it."""

    account_id: UUID
    intent: Intent
    orders: dict[str, BrokerOrder]
    command: Command | None
    now: datetime
    lease_token: UUID | None
    next_attempt_at: datetime
    submit_started_at: datetime | None
    accepted_at: datetime | None
    attempts: int
    open_actions: int
    done_sequence: int
    absences: int = 0
    traceparent: str | None = None
    """Of the request that gave the unsettled command."""
    holder: UUID | None = None
    """Set when the intent is not locked: then it is written only if it is still under this lease, and unchanged."""
    patience: Patience = Patience()
    rank: int = 0
    """Which of all that is recorded together acts now: events and positions of several intents keep that order."""
    events: list[dict[str, Any]] = field(default_factory=list)
    positions: list[dict[str, Any]] = field(default_factory=list)
    unsent: list[str] = field(default_factory=list)
    changed: bool = False
    respecified: bool = False
    """Whether a REPLACE has given the intent another spec."""

    @property
    def current_order(self) -> BrokerOrder | None:
        wanted = self.intent.broker_order_id
        return next((one for one in self.orders.values() if wanted and one.broker_order_id == wanted), None)
