"""What a command prints as it happens, until Ctrl-C."""

from contextlib import suppress
from typing import TYPE_CHECKING

from tip.order_text import event_line
from tip.plain import json_of
from tip.session import Session

if TYPE_CHECKING:
    from tip_client import Event


def until_interrupted() -> suppress:
    """Ctrl-C is how following ends: it is done, not a failure."""
    return suppress(KeyboardInterrupt)


def show_event(session: Session, event: "Event") -> None:
    if session.out.as_json:
        session.out.json_line(event_document(event))
    elif line := event_line(event):
        session.out.line(line)


def event_document(event: "Event") -> dict[str, object]:
    """The event with the platform's name of its type."""
    from tip_client.events import KINDS

    name = next((name for name, kind in KINDS.items() if type(event) is kind), "UNKNOWN")
    return {"event": name, **json_of(event)}


def follow_orders(session: Session, after: int | None, symbol: str | None) -> None:
    import tip_client as tip

    kinds = (tip.ActionAppended, tip.OrderUpdate, tip.Refusal)
    with until_interrupted(), session.account_client.events(after=after, types=kinds) as events:
        for event in events:
            if symbol is None or getattr(event, "symbol", None) == symbol:
                show_event(session, event)
            if session.out.is_closed:
                return
