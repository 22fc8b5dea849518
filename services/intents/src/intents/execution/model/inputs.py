"""What acts on an intent: the result of a command, a broker's report, an operator's word."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from intents.brokers.protocol import Execution, Order, Told
from intents.execution.model.commands import Work
from intents.execution.model.verdicts import Verdict


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


Happening = Answer | Heard | Resolution | OutOfReach
