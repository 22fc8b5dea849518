"""`tip positions`"""

from typing import TYPE_CHECKING

import click

from tip.moments import age_at
from tip.plain import amount, money, text_of
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.holdings import Position

TITLES = ("SYMBOL", "QUANTITY", "ENTRY", "LAST", "VALUE", "PROFIT", "AGE", "SOURCE")
NUMBERS = ("QUANTITY", "ENTRY", "LAST", "VALUE", "PROFIT")


@click.command()
@click.option("--refresh", is_flag=True, help="Have the broker read first; the next call shows what it said.")
@with_session
def command(session: Session, refresh: bool) -> None:
    """List positions.

    Every figure has its age and source: what the broker said, or what fills make of it.
    """
    if refresh:
        session.account_client.refresh()
    found = session.account_client.positions()
    if session.out.as_json:
        session.out.document({"data": found})
        return
    session.out.table(TITLES, [position_row(position) for position in found], right=NUMBERS, empty="no positions")


def position_row(position: "Position") -> tuple[str, ...]:
    prices = (amount(position.average_entry_price), amount(position.last_price))
    worth = (money(position.market_value), money(position.unrealized_profit))
    age = (age_at(position.as_of), text_of(position.source))
    return (position.symbol, amount(position.quantity), *prices, *worth, *age)
