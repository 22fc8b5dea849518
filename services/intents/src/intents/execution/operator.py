"""What only a person can find out: orders whose outcome no credential can query any more."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import Engine

from chassis import db
from intents.execution import recorder, store
from intents.execution.model.commands import ORDER, UNWANTED, Unresolved
from intents.execution.model.inputs import BrokerReport, Resolution
from intents.store.connections import PreparedConnections
from tip_brokers import Order, OrderStatus


class NotUnresolved(Exception):
    """There is no command with this client order id that waits for its outcome."""


class WasAccepted(Exception):
    """The broker has accepted the order: it cannot be said that it never arrived."""


class StillUnresolved(Exception):
    """What was found is recorded, and leaves the command or the order as open as it was."""


class Found(NamedTuple):
    """The order as the operator has seen it at the broker."""

    broker_order_id: str
    status: OrderStatus
    filled_quantity: Decimal
    average_price: Decimal | None


def unresolved(engine: Engine) -> list[Unresolved]:
    """Commands whose outcome is not known, and open orders that their intents do not ask for."""
    with db.reading(engine) as tx:
        return store.unresolved_commands(tx)


def resolve(engine: Engine, client_order_id: str, found: Found | None, note: str) -> Unresolved:
    """Settle a command by what an operator has found at the broker: the order, or that there is none."""
    command = _command(engine, client_order_id)
    if found is None and command.type in (ORDER, UNWANTED):
        raise WasAccepted
    if found is None:
        given: BrokerReport | Resolution = Resolution(command.account_id, command.intent_id, client_order_id, note)
    else:
        given = BrokerReport(command.account_id, _order(command, found), datetime.now(UTC))
    recorder.record(PreparedConnections(engine), [given])
    # A command that has become an open order, which nobody can query either, is settled all the same.
    if any((other.client_order_id, other.type) == (client_order_id, command.type) for other in unresolved(engine)):
        raise StillUnresolved
    return command


def _command(engine: Engine, client_order_id: str) -> Unresolved:
    for command in unresolved(engine):
        if command.client_order_id == client_order_id:
            return command
    raise NotUnresolved


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
