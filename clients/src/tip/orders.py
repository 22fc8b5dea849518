"""`tip orders`"""

from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING

import click

from tip.examples import with_examples
from tip.following import follow_orders
from tip.order_text import ORDER_NUMBERS, ORDER_TITLES, order_row
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client import Client

FOR_OPERATORS = {
    "unresolved": "List commands whose outcome is not known, and open orders that no intent wants.",
    "resolve": "Record what an operator has found at the broker about a command that `unresolved` lists.",
}


class OrderCommands(click.Group):
    """Its subcommands need the platform's own packages, which a trader's list does not wait for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(FOR_OPERATORS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in FOR_OPERATORS:
            return None
        found: click.Command = getattr(import_module("tip.unresolved_orders"), cmd_name)
        return with_examples(found, f"orders {cmd_name}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("For operators"):
            formatter.write_dl(list(FOR_OPERATORS.items()))


@click.group(cls=OrderCommands, invoke_without_command=True)
@click.option("--open", "only_open", is_flag=True, help="Only orders that have not ended.")
@click.option("--status", help="Only orders of this status.")
@click.option("--symbol", help="Only orders of this symbol.")
@click.option("--tag", help="Only orders with this tag.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many of the newest.")
@click.option(
    "--follow",
    is_flag=True,
    help="Go on and print what happens to orders, until Ctrl-C; not with --open, --status, --tag.",
)
@with_session
def command(
    session: Session, only_open: bool, status: str | None, symbol: str | None, tag: str | None, limit: int, follow: bool
) -> None:
    """List orders, follow them, and settle those of unknown outcome.

    The subcommands are for operators, on the platform's own machine.
    """
    if click.get_current_context().invoked_subcommand:
        return
    if only_open and status:
        raise click.UsageError("--open and --status are two choices of one thing")
    if follow and (only_open or status or tag):
        raise click.UsageError("--follow shows whatever happens: of --open, --status and --tag it takes none")
    after = newest_sequence(session.account_client) if follow else None
    if not (follow and session.out.as_json):
        list_orders(session, "open" if only_open else status, symbol, tag, limit)
    if follow:
        follow_orders(session, after, symbol)


def list_orders(session: Session, status: str | None, symbol: str | None, tag: str | None, limit: int) -> None:
    page = min(limit, 500)
    found = session.account_client.orders(status=status, symbol=symbol, tag=tag, newest_first=True, page_size=page)
    orders = list(islice(found, limit))
    if session.out.as_json:
        session.out.document({"data": orders})
        return
    rows = [order_row(order) for order in reversed(orders)]
    session.out.table(ORDER_TITLES, rows, right=ORDER_NUMBERS, empty="no orders")


def newest_sequence(client: "Client") -> int | None:
    """A place in the log before whatever the list shows: events after it leave no gap between list and stream.

    None, the end of the log, if there is no order: what the log holds then are refusals of the past.
    """
    newest = next(client.orders(newest_first=True, page_size=1), None)
    return newest.last_action.sequence if newest else None
