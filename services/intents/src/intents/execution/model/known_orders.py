"""What the reconciler knows of an account before it queries the broker."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from tip_brokers.protocol import Balance, Position


class WatchedAccount(NamedTuple):
    account_id: UUID
    organization_id: UUID
    broker: str
    environment: str
    is_urgent: bool
    """Whether an order is open there that no intent asks for."""
    is_restored: bool
    """Whether the log was restored to an earlier state since the account was last compared with its broker."""
    is_open: bool = True
    """Whether something of it is open or unconfirmed; else it is only read from time to time."""
    is_unconfirmed: bool = False
    """Whether more than its broker's updates must show what became of an order or how a position stands."""

    @property
    def lane(self) -> str:
        """As `LeasedCommand` has it."""
        return f"{self.broker} {self.environment}"


class KnownOpenOrder(NamedTuple):
    """An order that we have not seen the end of."""

    client_order_id: str
    broker_order_id: str | None
    """None of what was given up: perhaps it never got there."""
    status: str
    filled_quantity: Decimal
    created_at: datetime
    credential: str | None = None
    broker_account: str | None = None
    unwanted: bool = False
    needs_operator: bool = False
    """Whether its intent says that nobody can query it."""
    of_ended: bool = False
    """Whether its intent has ended."""
    key: str = ""
    """The client order id, with the broker's id behind it if it is of a second order."""
    in_flight: bool = False
    """Whether the executor is sending it, or has not found out yet what became of it."""
    symbol: str = ""


class ReadingStart(NamedTuple):
    """What was recorded of an account when a reading of it at its broker began."""

    began_at: datetime
    sequence: int
    """The head of its log."""
    orders: Sequence[KnownOpenOrder]


class Holdings(NamedTuple):
    """What the broker says that an account holds, by a reading that began then."""

    positions: Sequence[Position]
    balance: Balance
    began_at: datetime
    sequence: int
    """The head of the account's log at that time."""
    filled: Mapping[str, Decimal]
    """How much of each order is in the positions, by its key."""
    in_other_account: Collection[str]
    """Keys of orders in another account at the broker."""


class RestoredEpoch(NamedTuple):
    """The epoch of a log that was restored to an earlier state."""

    epoch: UUID
    started_at: datetime
