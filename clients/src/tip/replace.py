"""`tip replace`"""

from typing import Any

import click

from tip.amounts import AMOUNT
from tip.order_entry import command_options, settle
from tip.order_ids import intent_id_of
from tip.sending import interruptible, once
from tip.session import Session, with_session


@click.command()
@click.argument("intent_id", metavar="ID")
@click.option("--quantity", type=AMOUNT, help="The new total, what is filled included.")
@click.option("--limit", type=AMOUNT, metavar="PRICE")
@click.option("--stop", type=AMOUNT, metavar="PRICE")
@click.option("--trail", type=AMOUNT, metavar="AMOUNT")
@click.option("--trail-percent", type=AMOUNT, metavar="PERCENT")
@click.option("--time-in-force", "--tif", type=click.Choice(["DAY", "GTC", "IOC", "FOK"]))
@command_options
@with_session
def command(
    session: Session, /, intent_id: str, wait: bool, timeout: float, idempotency_key: str | None, **changes: Any
) -> None:
    """Change quantity or prices of an open order.

    ID is the intent's, or the beginning of it. What is not given stays. With --wait: exit code 0 means FILLED.
    """
    if all(value is None for value in changes.values()):
        raise click.UsageError(
            "give what changes: --quantity, --limit, --stop, --trail, --trail-percent or --time-in-force"
        )
    client, key = session.account_client, once(idempotency_key)
    order = client.order(intent_id_of(client, intent_id))
    replaced = interruptible(key, lambda: order.replace(**changes, idempotency_key=key))
    settle(session, replaced, key, timeout if wait else None)
