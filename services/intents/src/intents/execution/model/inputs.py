"""What acts on an intent: the result of a command, a broker's report, an operator's word."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from intents.execution.model.calls import BrokerCall
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.verdicts import Verdict
from tip_brokers.protocol import Execution, Order, RejectionNotice


class DispatchResult(NamedTuple):
    """What became of a command. Counts only as long as the lease is the intent's."""

    command: LeasedCommand
    verdict: Verdict
    calls: tuple[BrokerCall, ...] = ()
    """What was done at the broker to reach the verdict: that counts under any lease."""

    @property
    def account_id(self) -> UUID:
        return self.command.account_id

    @property
    def intent_id(self) -> UUID:
        return self.command.intent_id


class Resolution(NamedTuple):
    """An operator's word on a command whose outcome nobody could query: it never reached the broker, or is this leg."""

    account_id: UUID
    intent_id: UUID
    client_order_id: str
    reason: str
    leg: Order | None = None
    """Of the stop of an exit pair: the order that the broker has as part of another one."""


class OutOfReach(NamedTuple):
    """An order that was not seen to end, and of which only a person can find out what became of it."""

    account_id: UUID
    client_order_id: str
    reason: str = "No credential opens the account at the broker where the order is."


class BrokerReport(NamedTuple):
    """An order as a broker's stream or a reconciliation shows it: no lease, facts only."""

    account_id: UUID
    order: Order
    occurred_at: datetime
    execution: Execution | None = None
    rejection: RejectionNotice | None = None
    is_current_state: bool = False
    """Whether the broker was queried just now for the order as it stands."""

    @property
    def client_order_id(self) -> str:
        return self.order.client_order_id


ExecutionInput = DispatchResult | BrokerReport | Resolution | OutOfReach
