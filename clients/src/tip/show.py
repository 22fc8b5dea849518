"""`tip show`"""

from typing import TYPE_CHECKING, Any

import click

from tip.names import key_names
from tip.order_ids import intent_id_of
from tip.order_text import described, outcome_line
from tip.plain import json_of
from tip.session import Session, with_session
from tip.timeline_text import timeline_lines

if TYPE_CHECKING:
    from tip_client.models.timeline import TimelineEntry


@click.command()
@click.argument("intent_id", metavar="ID")
@with_session
def command(session: Session, intent_id: str) -> None:
    """Show the timeline of an order.

    Its commands with who gave them and which controls decided, the calls to the broker, and what the broker reported.
    ID is the intent's, or the beginning of it.
    """
    client = session.account_client
    order = client.order(intent_id_of(client, intent_id))
    entries = list(order.timeline())
    if session.out.as_json:
        session.out.document({"order": order, "timeline": [entry_document(entry) for entry in entries]})
        return
    session.out.line(f"{described(order.order_side, order.spec, order.symbol)}   {outcome_line(order)}")
    lines = list(timeline_lines(entries, key_names(client)))
    width = max((len(word) for _, word, _ in lines), default=0)
    for at, word, text in lines:
        session.out.line(f"{at}  {word:<{width}}  {text}")


def entry_document(entry: "TimelineEntry") -> dict[str, Any]:
    """As the API has it: of `command`, `call` and `report` an entry has the one of its kind."""
    kinds = ("command", "call", "report")
    return {name: value for name, value in json_of(entry).items() if name not in kinds or value is not None}
