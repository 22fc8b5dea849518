"""What only a person can find out: orders whose outcome no credential can query any more."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import Engine

import tip_brokers
from chassis import db
from intents.execution import recorder, store
from intents.execution.model.commands import ORDER, UNWANTED, Unresolved
from intents.execution.model.exit_pairs import may_be_leg
from intents.execution.model.inputs import BrokerReport, Resolution
from intents.store.connections import PreparedConnections
from tip_brokers import Order, OrderStatus


class NotUnresolved(Exception):
    """There is no command with this client order id that waits for its outcome."""


class WasAccepted(Exception):
    """The broker has accepted the order: it cannot be said that it never arrived."""


class StillUnresolved(Exception):
    """What was found is recorded, and leaves the command or the order as open as it was."""


class NameRequired(Exception):
    """The broker may have it as a leg of the order `leader`: only the name under which it is shown says which it is."""

    def __init__(self, leader: str) -> None:
        super().__init__(leader)
        self.leader = leader


class OtherOrder(Exception):
    """The broker shows what was found under a name that no order of this command can have."""


class Found(NamedTuple):
    """The order as the operator has seen it at the broker."""

    broker_order_id: str
    """As the broker shows it to people: its adapter's may say more."""
    status: OrderStatus
    filled_quantity: Decimal
    average_price: Decimal | None
    shown_as: str | None = None
    """Its client order id there; of a leg the broker makes it."""


def unresolved(engine: Engine) -> list[Unresolved]:
    """Commands whose outcome is not known, and open orders that their intents do not ask for."""
    with db.reading(engine) as tx:
        return store.unresolved_commands(tx)


def resolve(engine: Engine, client_order_id: str, found: Found | None, note: str) -> Unresolved:
    """Settle a command by what an operator has found at the broker: the order, or that there is none."""
    command = _command(engine, client_order_id)
    if found and found.shown_as:
        _refuse_other_order(engine, command, found.shown_as)
    completed = found and found._replace(broker_order_id=_complete_order_id(engine, command, found))
    recorder.record(PreparedConnections(engine), [_input(command, completed, note)])
    # A command that has become an open order, which nobody can query either, is settled all the same.
    if any((other.client_order_id, other.type) == (client_order_id, command.type) for other in unresolved(engine)):
        raise StillUnresolved
    return command


def _input(command: Unresolved, found: Found | None, note: str) -> BrokerReport | Resolution:
    resolution = Resolution(command.account_id, command.intent_id, command.client_order_id, note)
    if found is None:
        if command.type in (ORDER, UNWANTED):
            raise WasAccepted
        return resolution
    order = _order(command, found)
    if found.shown_as is None and command.leader:
        raise NameRequired(command.leader)
    if found.shown_as in (None, order.client_order_id):
        return BrokerReport(command.account_id, order, datetime.now(UTC))
    return resolution._replace(leg=replace(order, client_order_id=found.shown_as))


def _refuse_other_order(engine: Engine, command: Unresolved, shown_as: str) -> None:
    """Only the stop of a pair may have another name than its command, and then one that the broker has made."""
    if shown_as == (command.order_name or command.client_order_id):
        return
    with db.reading(engine) as tx:
        known = store.intent_of_order(tx, command.account_id, shown_as)
    if command.leader is None or not may_be_leg(shown_as) or known not in (None, command.intent_id):
        raise OtherOrder


def _command(engine: Engine, client_order_id: str) -> Unresolved:
    for command in unresolved(engine):
        if command.client_order_id == client_order_id:
            return command
    raise NotUnresolved


def _complete_order_id(engine: Engine, command: Unresolved, found: Found) -> str:
    """By which the order is read and canceled from now on. Of an account that was deleted nothing is."""
    with db.reading(engine) as tx:
        broker = store.broker_of_account(tx, command.account_id)
    described = tip_brokers.installed().get(broker or "")
    return described.complete_order_id(found.broker_order_id, command.symbol) if described else found.broker_order_id


def _order(command: Unresolved, found: Found) -> Order:
    now = datetime.now(UTC)
    [(kind, terms)] = command.spec.items()
    return Order(
        command.order_name or command.client_order_id,
        found.broker_order_id,
        found.status,
        command.symbol,
        command.order_side,
        kind,
        Decimal(terms["quantity"]) if command.type == "CREATE" and "quantity" in terms else None,
        found.filled_quantity,
        found.average_price,
        now,
        now,
    )
