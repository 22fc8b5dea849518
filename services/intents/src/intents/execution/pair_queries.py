"""What a broker is queried for about an exit that it may have got with its sibling, as one order."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from intents.execution.call_log import OrderEntry
from intents.execution.model.commands import LeasedCommand, Pair
from intents.execution.model.exit_pairs import find_leg, not_shown
from intents.execution.model.local_decisions import not_to_be_sent
from intents.execution.model.verdicts import LegFound, RetryLater, Verdict
from tip_brokers import NotSent, OutcomeUnknown

LEADER_SECONDS = 0.25  # until what becomes of the order that may have taken this one along is read again

T = TypeVar("T")


def find_as_leg(broker: OrderEntry, command: LeasedCommand) -> Verdict | None:
    """The order as a leg of its sibling's; None if it is none: then it is sent by itself."""
    if command.adopted:
        return _adopted_leg(broker, command, command.adopted)
    return _sent_with(broker, command, command.leader) if command.leader else None


def _sent_with(broker: OrderEntry, command: LeasedCommand, leader: Pair) -> Verdict | None:
    """The order as part of the leader's; None if that went without it or not at all."""
    if not leader.is_settled:
        return RetryLater(LEADER_SECONDS, "sibling_is_sent")
    shown = [read_before(command, partial(broker.find, name, command.symbol)) for name in leader.names]
    found = [order for order in shown if order]
    if verdict := find_leg(command, leader, found):
        return verdict
    return None if command.started_before else not_to_be_sent(command)


def _adopted_leg(broker: OrderEntry, command: LeasedCommand, broker_order_id: str) -> Verdict:
    """The leg as it stands, now that its reports are recorded. That it cannot be read makes nothing unknown."""
    try:
        order = broker.order(broker_order_id)
    except OutcomeUnknown as error:
        raise NotSent(error.reason) from error
    return LegFound(order) if order else not_shown(command)


def read_before(command: LeasedCommand, read: Callable[[], T]) -> T:
    """A read before the first send: that it failed does not make anything unknown."""
    try:
        return read()
    except OutcomeUnknown as error:
        if command.started_before:
            raise
        raise NotSent(error.reason) from error
