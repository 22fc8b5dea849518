"""What the reconciler knows of an account before it queries the broker."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID


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


class RestoredEpoch(NamedTuple):
    """The epoch of a log that was restored to an earlier state."""

    epoch: UUID
    started_at: datetime
