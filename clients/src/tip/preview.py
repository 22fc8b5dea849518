"""`tip preview`"""

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tip.exits import REFUSED
from tip.moments import Moment
from tip.order_entry import terms
from tip.order_text import described
from tip.plain import amount
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client import NewOrder
    from tip_client.models.controls import Preview


@click.command()
@click.argument("side", type=click.Choice(["BUY", "SELL"], case_sensitive=False))
@terms
@click.option("--at", type=Moment(), help="Judge it as of this time, for trading hours.")
@with_session
def command(
    session: Session, /, side: str, symbol: str, quantity: Decimal | None, at: datetime | None, **prices: Any
) -> None:
    """Show whether an order would pass the controls.

    Nothing is submitted. Exit code 1 if it would be refused.
    """
    order = new_order(side, symbol, quantity, **prices)
    found = session.account_client.controls.preview(order, at=at)
    if session.out.as_json:
        session.out.document(found)
    else:
        show(session, order, found)
    if not found.is_allowed:
        raise SystemExit(REFUSED)


def new_order(side: str, symbol: str, quantity: Decimal | None, **prices: Any) -> "NewOrder":
    from tip_client import Side
    from tip_client.orders import order_of

    return order_of(symbol, Side(side), quantity, **prices, client_id=None, tags=(), route_strategy=None)


def show(session: Session, order: "NewOrder", found: "Preview") -> None:
    what = described(order.order_side, order.spec, order.symbol)
    session.out.line(f"{found.decision} {what}   {checks(found)}", mark="✓" if found.is_allowed else "✗")
    for reason in found.reasons:
        session.out.line(f"  {reason.code}  {reason.message}  ({reason.control} v{reason.version})")


def checks(found: "Preview") -> str:
    """`3 checks, reference price 66.21 (fill)`."""
    facts, count = found.facts, len(found.checks)
    price = f", reference price {amount(facts.reference_price)} ({facts.reference_price_source})"
    return f"{count} {'check' if count == 1 else 'checks'}{price if facts.reference_price is not None else ''}"
