"""`tip watch`"""

import click

from tip.following import event_document, until_interrupted
from tip.session import Session, with_session


@click.command()
@click.option("--symbol", help="Only orders, positions and events of this symbol.")
@click.option("--after", metavar="POSITION", help="With JSON: events after this place, <sequence>@<epoch>; 0: all.")
@with_session
def command(session: Session, symbol: str | None, after: str | None) -> None:
    """Show open orders, positions and what happens, live.

    On a terminal it is one table, drawn anew in place, with the state of the connection, until Ctrl-C. In a pipe and
    with --json it is one JSON object for each event; the `position` of the last one goes on with --after.
    """
    wanted = symbol.upper() if symbol else None
    if session.out.is_terminal and not session.out.as_json:
        if after is not None:
            raise click.UsageError("--after goes with --json")
        watch(session, wanted)
    else:
        print_events(session, wanted, after)


def watch(session: Session, symbol: str | None) -> None:
    from tip.watch_screen import watch_account

    with until_interrupted(session.out):
        watch_account(session.settings, session.account_id, symbol)


def print_events(session: Session, symbol: str | None, after: str | None) -> None:
    if session.out.is_closed:
        return
    with until_interrupted(session.out), session.account_client.events(after=after) as events:
        for event in events:
            if symbol is None or getattr(event, "symbol", None) == symbol:
                session.out.json_line(event_document(event))
            if session.out.is_closed:
                return
