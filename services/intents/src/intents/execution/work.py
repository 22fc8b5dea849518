"""What the executor takes in hand, and what can come of it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from intents.brokers import Execution, Order, Told
from intents.model import Spec, Status, Update


def client_order_id(action_id: UUID) -> str:
    """A pure function of the action: whoever sends it, and however often, it is the same order."""
    return f"tip-{action_id.hex}"


class Claimed(NamedTuple):
    """What else the claim saw of the intent, and when by this process's monotonic clock."""

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
    intent_id: UUID
    lease_token: UUID
    lease_ends: float
    """By this process's monotonic clock, which goes on while the process is stopped."""
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
    current_filled: Decimal
    """Filled of the broker's current order alone: a replaced one may have had fills of its own."""
    started_before: datetime | None
    """When an earlier run began to send this: perhaps it got through."""
    attempts: int
    broker: str | None
    """None: the account is gone."""
    environment: str
    halted_by: str | None
    stale_millis: int | None
    credential: str | None
    """The account's best credential at the moment of the claim, as `KeyPair.reference` names it."""
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
    """The broker shows this order."""

    order: Order


class Refused(NamedTuple):
    """The broker's definite no, with the order it was about as it stands, if there is one."""

    code: str
    reason: str
    order: Order | None = None


class Requested(NamedTuple):
    """Taken in by the broker; how it ends will be seen."""


class Unknown(NamedTuple):
    """Perhaps done. Asked again later, never assumed."""

    reason: str


class Later(NamedTuple):
    """Nothing was done. With a `code` the intent shows why it waits."""

    seconds: float
    reason: str
    code: str | None = None


class Decided(NamedTuple):
    """Settled here, without the broker."""

    update: Update
    code: str
    reason: str


Verdict = Seen | Refused | Requested | Unknown | Later | Decided


class Answer(NamedTuple):
    """What became of a piece of work. Counts only as long as the lease is the intent's."""

    work: Work
    verdict: Verdict

    @property
    def account_id(self) -> UUID:
        return self.work.account_id


class Heard(NamedTuple):
    """What a broker told or showed without being asked for this intent: no lease, facts only."""

    account_id: UUID
    order: Order
    occurred_at: datetime
    execution: Execution | None = None
    told: Told | None = None
    position_known: bool = False
    """Whether the position is recorded by itself, so that a fill does not move it again."""
