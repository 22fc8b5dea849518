"""`tip balances`"""

from typing import TYPE_CHECKING

import click

from tip.moments import age_at
from tip.plain import money, text_of
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.holdings import Balances

TITLES = ("CURRENCY", "CASH", "EQUITY", "BUYING POWER", "AGE", "SOURCE")
NUMBERS = ("CASH", "EQUITY", "BUYING POWER")


@click.command()
@with_session
def command(session: Session) -> None:
    """Show cash, equity and buying power."""
    found = session.account_client.balances()
    if session.out.as_json:
        session.out.document(found)
        return
    session.out.table(TITLES, [balances_row(found)], right=NUMBERS)


def balances_row(found: "Balances") -> tuple[str, ...]:
    amounts = (money(found.cash), money(found.equity), money(found.buying_power))
    return (text_of(found.currency), *amounts, age_at(found.as_of), text_of(found.source))
