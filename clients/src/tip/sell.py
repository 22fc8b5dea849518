"""`tip sell`"""

from typing import Any

import click

from tip.order_entry import enter, submit_options
from tip.session import Session, with_session


@click.command()
@submit_options
@with_session
def command(session: Session, /, **order: Any) -> None:
    """Submit an order to sell.

    QUANTITY, or --notional for so much money. At the market, by --limit, --stop or both, or by a trailing stop
    (--trail, --trail-percent). Without --wait it returns once the platform has accepted the order; with it, exit code 0
    means FILLED, 1 that the order ended otherwise, 4 that it is still open. With --take-profit and --stop-loss the
    platform sends orders that close it as soon as it is filled, and cancels the one when the other is.
    """
    enter(session, "SELL", **order)
