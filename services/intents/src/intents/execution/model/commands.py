"""Commands under a lease, with everything that the executor has to know to send them; and those unresolved."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from intents.execution.client_order_id import client_order_id
from intents.model import Owner, Spec, Status, SubmitFacts
from intents.model.groups import leads

PRICE_WAIT = timedelta(seconds=30)
DERIVED = "derived"
"""The credential of a paper account that has none of its own."""


class KnownOrder(NamedTuple):
    """An order of the intent as our table has it. `ended`: nothing more can be filled of it."""

    client_order_id: str
    broker_order_id: str | None
    ended: bool
    filled_quantity: Decimal


class Pair(NamedTuple):
    """The other exit of an order group whose exits are one order at the broker. The Limit is the one that is sent."""

    client_order_id: str
    """Of its CREATE."""
    spec: Spec
    is_held: bool
    """Whether it is sent with this one."""
    is_started: bool
    is_settled: bool
    """Whether its CREATE may be under way, and whether it is known what became of it."""
    is_sent: bool
    is_accepted: bool
    """Whether it may be at the broker, and whether the broker has shown it."""
    latest: str | None = None
    """The client order id of its order as the broker has it now, which is another one after a REPLACE."""
    intent_id: UUID | None = None

    @property
    def names(self) -> list[str]:
        """The client order ids by which the broker may show it, the latest last."""
        return list(dict.fromkeys(filter(None, (self.client_order_id, self.latest))))


class ClaimSnapshot(NamedTuple):
    """What else the claim read of the intent, and when: the moment before the query, by `clock.elapsed`."""

    at: float
    sequence: int
    route_strategy: str
    reason_code: str | None
    version: int
    updated_at: datetime
    open_actions: int
    done_sequence: int
    traceparent: str | None
    request_id: str | None = None
    extended_hours: bool = False


@dataclass(frozen=True, slots=True)
class LeasedCommand:
    """The earliest command of an intent that is not settled, under a lease."""

    account_id: UUID
    organization_id: UUID
    intent_id: UUID
    lease_token: UUID
    lease_ends: float
    """By `clock.elapsed`, which goes on while the process is stopped."""
    now: datetime
    action_id: UUID
    type: str
    created_at: datetime
    symbol: str
    order_side: str
    spec: Spec
    """What the command asks for; of a CANCEL, what the order is."""
    quantity: Decimal
    filled_quantity: Decimal
    status: Status
    broker_order_id: str | None
    orders: tuple[KnownOrder, ...]
    """Those of a REPLACE's intent; other commands do not need them."""
    started_before: datetime | None
    """When an earlier run began to send this: perhaps it got through."""
    attempts: int
    absences: int
    """How often in a row the broker, when it could be queried, did not have what may have been sent."""
    broker: str | None
    """None: the account is gone."""
    environment: str
    lane: str
    """The broker and environment by which it is queued, also if the account is gone."""
    submitted_at: datetime
    is_own: bool
    """Whether the platform itself gave the command."""
    facts: SubmitFacts
    """What decides whether it may be sent; of a CANCEL, which always may, without an account."""
    entitlements: frozenset[str]
    """Of the organization; read only where the account is live."""
    credential: str | None
    """The account's best credential at the moment of the claim, as `KeyPair.reference` names it."""
    bound_credential: str | None
    """The credential under which the order in question was sent: it is queried, changed and resent under no other."""
    opened_account: str | None
    """The account at the broker which that credential opens, or else the account's best one, if that is recorded."""
    snapshot: ClaimSnapshot
    held_account: str | None = None
    """The account at the broker of which the positions are, as far as that is known."""
    awaits_reading: bool = False
    """Whether that is another one than before, and it was not read yet."""
    holder: int | None = None
    """Under which id of `Liveness` it was claimed; None: the lease ends by the clock alone."""
    price_wait: timedelta = PRICE_WAIT
    """How long it waits for a price that a limit needs and that is too old by now."""
    reduce_only: bool = False
    """Whether it may only close a position: the order of an operation that closes positions."""
    waiting_since: datetime | None = None
    """The place that it had in the wait queue of an open circuit."""
    in_group: bool = False
    """Whether its intent is a leg of an order group: then what becomes of it may concern the other legs."""
    pair: Pair | None = None
    """Of the CREATE of an exit that is one order with another one."""
    stop_command: "LeasedCommand | None" = None
    """The CREATE of the stop that is sent with it, as if that were sent by itself: with the facts that decide about it,
    once these are read."""

    @property
    def client_order_id(self) -> str:
        return client_order_id(self.action_id)

    @property
    def stop(self) -> Spec | None:
        """The other exit, if it is sent with this one."""
        return self.pair.spec if self.pair and leads(self.spec) and self.pair.is_held else None

    @property
    def alone(self) -> "LeasedCommand":
        """The command without the stop."""
        return replace(self, pair=self.pair and self.pair._replace(is_held=False), stop_command=None)

    @property
    def leader(self) -> Pair | None:
        """The exit with which this one may have been sent."""
        if self.pair is None or leads(self.spec):
            return None
        return self.pair if self.pair.is_started or (self.pair.is_settled and self.pair.is_sent) else None

    @property
    def adopted(self) -> str | None:
        """The broker's id of the leg that its CREATE has turned out to be, which is to be read once more."""
        return self.broker_order_id if self.type == "CREATE" else None

    @property
    def owner(self) -> Owner:
        return Owner(self.organization_id, self.environment, self.entitlements)

    @property
    def is_of_other_account(self) -> bool:
        """Whether it would be sent to another account at the broker than the one whose positions are known."""
        is_known = self.bound_credential is None and None not in (self.opened_account, self.held_account)
        return is_known and self.opened_account != self.held_account

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever done about the intent, so that all there is to know of it is here."""
        return self.type == "CREATE" and self.started_before is None and not self.in_group


ORDER, UNWANTED = "ORDER", "UNWANTED"
"""Types of what is unresolved beside those of commands."""


class Unresolved(NamedTuple):
    """A command that may have been sent, an ORDER that nobody can query, one that is UNWANTED, and where it is.

    `client_order_id` names it for `resolve`.
    """

    account_id: UUID
    intent_id: UUID
    client_order_id: str
    type: str
    status: str
    reason_code: str | None
    symbol: str
    order_side: str
    spec: dict[str, dict[str, str]]
    submit_started_at: datetime | None
    credential: str | None
    broker_account: str | None
    broker_order_id: str | None
    order_name: str | None
    leader: str | None
    """Of the CREATE of a stop: the client order id of the order as a leg of which the broker may have it."""
