"""`tip orders unresolved` and `tip orders resolve`: what an operator does about orders of unknown outcome."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation

import click
from sqlalchemy import Engine, NullPool, create_engine

from chassis import db
from intents.execution import operator
from intents.execution.model.commands import UNWANTED
from intents.execution.model.verdicts import OPERATOR_REQUIRED
from tip_brokers import OrderStatus
from tip_local.errors import Fault
from tip_local.schema import database
from tip_local.settings import Settings

STATUSES = {
    "working": OrderStatus.WORKING,
    "filled": OrderStatus.FILLED,
    "canceled": OrderStatus.CANCELED,
    "expired": OrderStatus.EXPIRED,
    "rejected": OrderStatus.REJECTED,
}


@click.command()
def unresolved() -> None:
    """List commands whose outcome is not known, and open orders that no intent wants."""
    with connected() as engine:
        found = operator.unresolved(engine)
    if not found:
        click.echo("tip: the outcome of every command is known, or nothing of it was sent")
        return
    for order in found:
        sent = order.submit_started_at.strftime("%Y-%m-%dT%H:%M:%SZ") if order.submit_started_at else "-"
        needed = "needs an operator" if order.reason_code == OPERATOR_REQUIRED else "is being queried"
        waits = "is being canceled" if order.type == UNWANTED else needed
        click.echo(f"{order.client_order_id}  {order.type:<8} {order.order_side} {order.symbol}  sent {sent}  {waits}")
        where = order.broker_account or "unknown"
        click.echo(f"    account {order.account_id}, intent {order.intent_id}, account at the broker {where}")
        if order.leader:
            click.echo(f"    perhaps a leg of {order.leader}, under a client order id that the broker has made")


@click.command()
@click.argument("client_order_id")
@click.option("--never-arrived", is_flag=True, help="The broker has no such order, also not as a leg of another.")
@click.option("--broker-order-id", help="The id under which the broker shows the order that is there.")
@click.option("--shown-as", help="Its client order id there. Only of the stop of an exit pair, which the broker names.")
@click.option("--status", type=click.Choice(list(STATUSES)), help="What became of that order.")
@click.option("--filled", default="0", show_default=True, help="How much of it is filled.")
@click.option("--price", help="At which average price.")
@click.option("--note", default="An operator has looked at the broker.", help="Kept with the event.")
def resolve(
    client_order_id: str,
    never_arrived: bool,
    broker_order_id: str | None,
    shown_as: str | None,
    status: str | None,
    filled: str,
    price: str | None,
    note: str,
) -> None:
    """Record what an operator has found at the broker about a command that `unresolved` lists.

    Either --never-arrived, or --broker-order-id and --status, with --filled and --price as far as it is filled. The
    stop of an exit pair is listed with the order as a leg of which the broker may have it: --shown-as says which order
    was found.
    """
    if never_arrived == bool(broker_order_id or status or shown_as):
        raise click.UsageError("say --never-arrived, or give --broker-order-id and --status")
    if not never_arrived and not (broker_order_id and status):
        raise click.UsageError("--broker-order-id and --status go together")
    found = None if never_arrived else _found(broker_order_id or "", status or "", filled, price, shown_as)
    with connected() as engine:
        try:
            settled = operator.resolve(engine, client_order_id, found, note)
        except operator.NotUnresolved:
            raise Fault(f"no command {client_order_id} waits for its outcome; see: tip orders unresolved") from None
        except operator.StillUnresolved:
            raise Fault("it is recorded, but an order that is still working settles nothing here") from None
        except operator.WasAccepted:
            raise Fault("the broker has accepted this order: give --broker-order-id and --status") from None
        except operator.NameRequired as missing:
            raise Fault(
                f"the broker may have it as a leg of {missing.leader}: give --shown-as, the client order id under "
                "which it shows the order that you found, so that what it reports later is recognised"
            ) from None
        except operator.OtherOrder:
            raise Fault("what is shown under this client order id is another order: leave --shown-as out") from None
    click.echo(f"tip: {settled.type} of intent {settled.intent_id} is settled")


def _found(broker_order_id: str, status: str, filled: str, price: str | None, shown_as: str | None) -> operator.Found:
    try:
        quantity, average = Decimal(filled), None if price is None else Decimal(price)
    except InvalidOperation:
        raise click.UsageError("--filled and --price are numbers") from None
    if not quantity.is_finite() or quantity < 0 or (average is not None and not (average.is_finite() and average > 0)):
        raise click.UsageError("--filled must not be negative, and --price must be above zero")
    if quantity > 0 and average is None:
        raise click.UsageError("what is filled has a price: --price")
    return operator.Found(broker_order_id, STATUSES[status], quantity, average, shown_as)


@contextmanager
def connected() -> Iterator[Engine]:
    """The platform's database, as its administrator."""
    with database(Settings.from_env()) as stack:
        engine = create_engine(db.with_driver(stack.admin_url), poolclass=NullPool)
        yield engine
        engine.dispose()
