"""What the executor takes in hand, and what can come of it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from intents.brokers import Execution, Order, Told
from intents.execution.client_order_id import client_order_id
from intents.model import Spec, Status, Update


class KnownOrder(NamedTuple):
    """An order of the intent as our table has it. `ended`: nothing more can be filled of it."""

    client_order_id: str
    broker_order_id: str | None
    ended: bool
    filled_quantity: Decimal


class Claimed(NamedTuple):
    """What else the claim saw of the intent, and when: the moment before it looked, by `clock.elapsed`."""

    at: float
    sequence: int
    route_strategy: str
    reason_code: str | None
    version: int
    updated_at: datetime
    open_actions: int
    done_sequence: int
    traceparent: str | None


@dataclass(frozen=True, slots=True)
class Work:
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
    """Those of a REPLACE's intent; of other commands nobody asks."""
    started_before: datetime | None
    """When an earlier run began to send this: perhaps it got through."""
    attempts: int
    absences: int
    """How often in a row the broker, when it could be queried, did not have what may have been sent."""
    broker: str | None
    """None: the account is gone."""
    environment: str
    halted_by: str | None
    stale_millis: int | None
    credential: str | None
    """The account's best credential at the moment of the claim, as `KeyPair.reference` names it."""
    bound_credential: str | None
    """The credential under which the order in question was sent: it is queried, changed and resent under no other."""
    opened_account: str | None
    """The account at the broker which that credential opens, or else the account's best one, if that is recorded."""
    claimed: Claimed
    holder: int | None = None
    """Under which id of `Liveness` it was claimed; None: the lease ends by the clock alone."""

    @property
    def client_order_id(self) -> str:
        return client_order_id(self.action_id)

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever done about the intent, so that all there is to know of it is here."""
        return self.type == "CREATE" and self.started_before is None


class Seen(NamedTuple):
    """The broker shows this order; and, where the command concerned them, these others of the intent."""

    order: Order
    others: tuple[Order, ...] = ()


class Refused(NamedTuple):
    """The broker's definite no, with the intent's orders as they stand, as far as they were seen."""

    code: str
    reason: str
    orders: tuple[Order, ...] = ()


class Requested(NamedTuple):
    """Taken in by the broker; how it ends will be seen."""


class Unknown(NamedTuple):
    """Perhaps done. Queried again later, never assumed. With a `code` the intent shows what it takes to find out."""

    reason: str
    code: str | None = None
    seconds: float | None = None


class Later(NamedTuple):
    """Nothing was done. With a `code` the intent shows why it waits."""

    seconds: float
    reason: str
    code: str | None = None
    absent: bool = False
    """Whether the broker was queried for what may have been sent, and did not have it."""


class Decided(NamedTuple):
    """Settled here, without the broker."""

    update: Update
    code: str
    reason: str


OPERATOR_REQUIRED = "OPERATOR_REQUIRED"
"""The reason code of what only a person can find out."""

Verdict = Seen | Refused | Requested | Unknown | Later | Decided


class Answer(NamedTuple):
    """What became of a piece of work. Counts only as long as the lease is the intent's."""

    work: Work
    verdict: Verdict

    @property
    def account_id(self) -> UUID:
        return self.work.account_id

    @property
    def intent_id(self) -> UUID:
        return self.work.intent_id


class Resolution(NamedTuple):
    """An operator's word on a command whose outcome nobody could query: it never reached the broker."""

    account_id: UUID
    intent_id: UUID
    client_order_id: str
    reason: str


class OutOfReach(NamedTuple):
    """An order that was not seen to end, in an account at the broker that no credential opens any more."""

    account_id: UUID
    client_order_id: str


class Heard(NamedTuple):
    """What a broker told or showed without being asked for this intent: no lease, facts only."""

    account_id: UUID
    order: Order
    occurred_at: datetime
    execution: Execution | None = None
    told: Told | None = None
    position_known: bool = False
    """Whether the position is recorded by itself, so that a fill does not move it again."""
    is_current_state: bool = False
    """Whether the broker was asked just now for the order as it stands."""

    @property
    def client_order_id(self) -> str:
        return self.order.client_order_id
