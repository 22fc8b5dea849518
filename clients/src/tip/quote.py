"""`tip quote`"""

from typing import TYPE_CHECKING

import click

from tip.moments import age
from tip.plain import amount, text_of
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.holdings import Quote

TITLES = ("SYMBOL", "BID", "ASK", "LAST", "AGE", "SOURCE")
NUMBERS = ("BID", "ASK", "LAST")


@click.command()
@click.argument("symbols", nargs=-1, required=True, metavar="SYMBOL...")
@with_session
def command(session: Session, symbols: tuple[str, ...]) -> None:
    """Show the latest price of symbols."""
    found = [session.account_client.quote(symbol) for symbol in symbols]
    if session.out.as_json:
        session.out.document({"data": found})
        return
    session.out.table(TITLES, [quote_row(quote) for quote in found], right=NUMBERS)


def quote_row(quote: "Quote") -> tuple[str, ...]:
    prices = (amount(quote.bid), amount(quote.ask), amount(quote.last))
    return (quote.symbol, *prices, age(quote.age_seconds), text_of(quote.source))
