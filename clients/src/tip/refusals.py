"""`tip refusals`"""

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

import click

from tip.moments import Moment, clock
from tip.names import actor_name, key_names
from tip.order_text import size
from tip.plain import short
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.trading import RefusedCommand

TITLES = ("TIME", "WHO", "SYMBOL", "ORDER", "CODE", "WHY", "REQUEST")


@click.command()
@click.option("--since", type=Moment(), help="An age such as 1h, or a time.")
@click.option("--symbol", help="Only of this symbol.")
@click.option("--code", help="Only with this code, such as SYMBOL_DISABLED.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many, newest first.")
@with_session
def command(session: Session, since: datetime | None, symbol: str | None, code: str | None, limit: int) -> None:
    """List the commands that controls refused.

    With several reasons a command has several lines. REQUEST begins the request's id, which finds it in the logs.
    """
    client = session.account_client
    found = list(islice(client.refusals(from_=since, symbol=symbol, code=code, page_size=min(limit, 500)), limit))
    if session.out.as_json:
        session.out.document({"data": found})
        return
    names = key_names(client)
    rows = [row for refused in reversed(found) for row in refusal_rows(refused, names)]
    session.out.table(TITLES, rows, empty="no refusals")


def refusal_rows(refused: "RefusedCommand", names: Mapping[str, str]) -> list[tuple[str, ...]]:
    """One for each reason."""
    who = actor_name(refused.actor, names)
    about = (clock(refused.created_at), who, refused.symbol, _order(refused))
    return [(*about, reason.code, reason.message, short(refused.request_id)) for reason in refused.reasons]


def _order(refused: "RefusedCommand") -> str:
    """`BUY 500`, or the command where it has no order of its own."""
    if refused.spec is None:
        return str(refused.type)
    return f"{refused.order_side or refused.type} {size(refused.spec)}"
