"""`tip close`"""

import click

from tip.bulk import finish
from tip.confirm import confirm_live, yes_option
from tip.order_entry import command_options
from tip.sending import interruptible, once
from tip.session import Session, with_session


@click.command()
@click.argument("symbol", required=False)
@click.option("--all", "everything", is_flag=True, help="Every position of the account.")
@click.option("--reason", help="Kept in the log.")
@yes_option
@command_options
@with_session
def command(
    session: Session, symbol: str | None, everything: bool, reason: str | None,
    yes: bool, wait: bool, timeout: float, idempotency_key: str | None,
) -> None:  # fmt: skip
    """Close positions by market orders.

    That of a SYMBOL, or --all. Open orders of these symbols are canceled first. On a live account it asks for
    confirmation. Exit code 1 if controls refuse to close one.
    """
    if (symbol is None) != everything:
        raise click.UsageError("give a SYMBOL, or --all")
    key = once(idempotency_key)
    confirm_live(session, f"{symbol or 'Every position'} of {{account}} is closed at the market", yes=yes)
    client = session.account_client
    operation = interruptible(key, lambda: client.close_positions(symbol=symbol, reason=reason, idempotency_key=key))
    finish(session, operation, key, timeout if wait else None)
