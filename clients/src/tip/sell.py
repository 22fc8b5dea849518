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
    means FILLED, 1 that the order ended otherwise, 4 that it is still open. With --take-profit or --stop-loss the
    platform sends an order that closes it as soon as it is filled; with both, where the broker lets two orders close
    one position, it cancels the one when the other is filled.
    """
    enter(session, "SELL", **order)
