"""`tip cancel`"""

import click

from tip.bulk import finish
from tip.confirm import confirm_live, yes_option
from tip.order_entry import command_options, settle
from tip.order_ids import intent_id_of
from tip.sending import interruptible, once
from tip.session import Session, with_session


@click.command()
@click.argument("intent_id", metavar="[ID]", required=False)
@click.option("--all", "everything", is_flag=True, help="All open orders of the account.")
@click.option("--symbol", help="With --all: only orders of this symbol.")
@click.option("--side", type=click.Choice(["BUY", "SELL"]), help="With --all: only these.")
@click.option("--reason", help="With --all: kept in the log.")
@yes_option
@command_options
@with_session
def command(
    session: Session, intent_id: str | None, everything: bool, symbol: str | None, side: str | None,
    reason: str | None, yes: bool, wait: bool, timeout: float, idempotency_key: str | None,
) -> None:  # fmt: skip
    """Cancel orders.

    One by its ID, or the beginning of it, or --all open orders. An order may be filled before the cancel arrives: with
    --wait, exit code 0 means CANCELED and 1 that it ended otherwise. --all on a live account asks for confirmation.
    """
    if (intent_id is None) != everything or (not everything and (symbol or side or reason)):
        raise click.UsageError("give an ID, or --all with --symbol, --side or --reason")
    key, patience = once(idempotency_key), timeout if wait else None
    if intent_id is not None:
        cancel_one(session, intent_id, key, patience)
        return
    chosen = " ".join(word for word in (side, symbol) if word)
    confirm_live(session, f"All open {f'{chosen} ' if chosen else ''}orders of {{account}} are canceled", yes=yes)
    client, terms = session.account_client, {"symbol": symbol, "side": side, "reason": reason}
    operation = interruptible(key, lambda: client.cancel_all(**terms, idempotency_key=key))
    finish(session, operation, key, patience)


def cancel_one(session: Session, intent_id: str, key: str, timeout: float | None) -> None:
    client = session.account_client
    order = client.order(intent_id_of(client, intent_id))
    canceled = interruptible(key, lambda: order.cancel(idempotency_key=key))
    settle(session, canceled, key, timeout, wanted="CANCELED")
