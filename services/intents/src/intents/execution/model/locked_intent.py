"""An intent under lock, with everything that settling has to know of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from intents.execution.client_order_id import is_duplicate
from intents.model import Intent, Spec
from tip_brokers.protocol import OPEN

STARTED = "STARTED"
"""The status of an order from before it is sent until the broker has shown it."""
MISSING = "MISSING"
"""The status of an order that may have been sent, was not found at the broker, and was given up."""


@dataclass(slots=True)
class BrokerOrder:
    """An order of the intent, as we know it."""

    key: str
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
    in_former_account: bool = False
    """Whether it is in another account at the broker than the positions, so that its fills move none."""

    @property
    def is_duplicate(self) -> bool:
        return is_duplicate(self.key)

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
class Progress:
    """The execution columns of an intent row, as `store.locking` reads and `store.writing` writes them."""

    lease_token: UUID | None
    next_attempt_at: datetime
    submit_started_at: datetime | None
    accepted_at: datetime | None
    attempts: int
    open_actions: int
    done_sequence: int
    absences: int = 0
    waiting_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class LockedGroup:
    """The order group of an intent: what it was for, and by how much its legs are known to have filled more."""

    id: UUID
    quantity: Decimal
    excess_quantity: Decimal
    paired: bool = False
    """Whether the exits that exclude each other are one order at the broker."""


@dataclass(frozen=True, slots=True)
class LockedIntent:
    """An intent under lock; or as its claim saw it, then `expected_lease` and the version guard the write."""

    account_id: UUID
    intent: Intent
    orders: Mapping[str, BrokerOrder]
    command: Command | None
    progress: Progress
    now: datetime
    traceparent: str | None = None
    """Of the request that gave the unsettled command, like `request_id`."""
    request_id: str | None = None
    expected_lease: UUID | None = None
    group: LockedGroup | None = None
