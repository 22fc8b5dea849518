"""A stop that the broker has as a leg of its sibling's order becomes that leg.

The leg's name is recorded first and its state read afterwards: a report about it that came before the name was known
was dropped, and what it said is shown by that reading. So the stop's CREATE stays open until then.
"""

from dataclasses import replace
from decimal import Decimal

from intents.execution.model.exit_pairs import Wanted, leg_of
from intents.execution.model.inputs import BrokerReport
from intents.execution.model.locked_intent import STARTED, BrokerOrder
from intents.execution.model.order_reports import apply_order
from intents.execution.model.settlement import Settlement
from intents.model import TERMINAL
from intents.model.groups import waits_for_parent
from tip_brokers.protocol import Order

_ZERO = Decimal(0)


def adopt_shown(leader: Settlement, follower: Settlement) -> None:
    """Adopt the leg that an answer about the leader has shown, if the follower has no order yet."""
    intent, order = follower.intent, leader.current_order
    if intent.broker_order_id or intent.status in TERMINAL or waits_for_parent(intent) or order is None:
        return
    if leg := leg_of(leader.legs, Wanted.by(intent)):
        adopt(follower, leg, order)


def adopt(settlement: Settlement, leg: Order, at: BrokerOrder | None) -> None:
    """The leg is the intent's order from here on, under its own name: by that it is reported. `at`: an order of ours in
    the same account at the broker."""
    command, settlement.command = settlement.command, None  # what is accepted now does not settle it yet
    sequence = command.sequence if command else 0
    settlement.orders.setdefault(leg.client_order_id, _row(leg, sequence, at))
    apply_order(settlement, BrokerReport(settlement.locked.account_id, leg, leg.updated_at))
    if settlement.intent.status not in TERMINAL:
        settlement.command = command


def _row(leg: Order, sequence: int, at: BrokerOrder | None) -> BrokerOrder:
    empty = BrokerOrder(leg.client_order_id, sequence, None, STARTED, set(), _ZERO, _ZERO, _ZERO)
    return empty if at is None else replace(empty, credential=at.credential, in_former_account=at.in_former_account)
