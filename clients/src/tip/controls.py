"""`tip controls`"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tip.confirm import confirm_live, yes_option
from tip.control_text import CHANGE_TITLES, TITLES, change_row, control_json, symbol_row, symbol_text
from tip.exits import Failure
from tip.lookup import not_empty
from tip.moments import Duration
from tip.names import key_names
from tip.sending import interruptible
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.controls import SymbolManualControl, SymbolTimeControl

T = TypeVar("T")

TIME_OF_DAY = click.DateTime(formats=["%H:%M", "%H:%M:%S"])
CLEARED = {"start": "trading_start", "end": "trading_end", "stale-after": "stale_order_millis"}


@click.group(invoke_without_command=True)
@with_session
def command(session: Session) -> None:
    """List and set what may be traded, and when; list who changed it.

    `tip halt` and `tip resume` set what a whole account may trade, `tip limits` how much. Changes on a live account ask
    for confirmation.
    """
    if not click.get_current_context().invoked_subcommand:
        list_controls(session)


@command.command("list")
@with_session
def list_command(session: Session) -> None:
    """List the trading state, and every symbol that has a control."""
    list_controls(session)


def list_controls(session: Session) -> None:
    controls = session.account_client.controls
    account, organization = if_there(controls.trading_state), if_there(controls.organization_state)
    symbols = list(controls.symbols())
    if session.out.as_json:
        found = {"account": account, "organization": organization, "data": symbols}
        session.out.document(control_json(found))
        return
    for whose, switch in (("account", account), ("organization", organization)):
        reason = f": {switch.reason}" if switch and switch.reason else ""
        session.out.line(f"{whose} is {switch.trading_state if switch else 'ACTIVE'}{reason}")
    session.out.table(TITLES, map(symbol_row, symbols), empty="no symbol has a control")


@command.command()
@click.argument("symbol", callback=not_empty)
@click.option("--reason", help="Shown to whoever is refused.")
@yes_option
@with_session
def disable(session: Session, symbol: str, reason: str | None, yes: bool) -> None:
    """Refuse orders for a symbol until it is enabled."""
    confirm_live(session, f"{{account}} refuses orders for {symbol}", yes=yes)
    controls = session.account_client.controls
    show(session, interruptible(None, lambda: controls.disable_symbol(symbol, reason=reason)))


@command.command()
@click.argument("symbol", callback=not_empty)
@yes_option
@with_session
def enable(session: Session, symbol: str, yes: bool) -> None:
    """Accept orders for a symbol again."""
    confirm_live(session, f"{{account}} accepts orders for {symbol} again", yes=yes)
    controls = session.account_client.controls
    show(session, interruptible(None, lambda: controls.enable_symbol(symbol)))


@command.command()
@click.argument("symbol", callback=not_empty)
@click.option("--start", type=TIME_OF_DAY, metavar="HH:MM", help="Orders are accepted from then on.")
@click.option("--end", type=TIME_OF_DAY, metavar="HH:MM", help="Orders are accepted before then.")
@click.option("--stale-after", type=Duration(), help="An order that is open so long is canceled, such as 60s.")
@click.option("--clear", type=click.Choice(list(CLEARED)), multiple=True, help="Remove this; may be repeated.")
@yes_option
@with_session
def hours(
    session: Session, symbol: str, start: datetime | None, end: datetime | None, stale_after: timedelta | None,
    clear: tuple[str, ...], yes: bool,
) -> None:  # fmt: skip
    """Set when a symbol is traded, and when its orders are stale.

    The times are of the account's zone. What is not given stays as it is.
    """
    if not (start or end or stale_after or clear):
        raise click.UsageError("give --start, --end, --stale-after or --clear")
    confirm_live(session, f"The trading hours of {symbol} on {{account}} change", yes=yes)
    changes = hours_of(start, end, stale_after, clear)
    controls = session.account_client.controls
    show(session, interruptible(None, lambda: controls.set_trading_hours(symbol, **changes)))


def hours_of(
    start: datetime | None, end: datetime | None, stale_after: timedelta | None, clear: tuple[str, ...]
) -> dict[str, Any]:
    times = {"start": start.time() if start else None, "end": end.time() if end else None}
    stale = int(stale_after.total_seconds() * 1000) if stale_after else None
    return {**times, "stale_order_millis": stale, "clear": [CLEARED[name] for name in clear]}


@command.command()
@click.argument("symbol", callback=not_empty)
@click.option("--only", type=click.Choice(["manual", "hours"]), help="Remove this one and keep the other.")
@yes_option
@with_session
def remove(session: Session, symbol: str, only: str | None, yes: bool) -> None:
    """Remove a symbol's manual control and its trading hours: `tip limits remove` removes its limits."""
    confirm_live(session, f"Controls of {symbol} on {{account}} are removed", yes=yes)
    controls = session.account_client.controls
    removals = {"manual": controls.remove_symbol, "hours": controls.remove_trading_hours}
    wanted = {name: remove for name, remove in removals.items() if only in (None, name)}
    removed = [name for name, remove in wanted.items() if is_removed(remove, symbol)]
    if not removed:
        raise Failure(f"{symbol} has no such control", code="not_found", hint="`tip controls` lists them")
    session.out.result({"symbol": symbol, "removed": removed}, f"{symbol} has no {' and no '.join(removed)} control")


@command.command()
@click.option("--symbol", help="Only changes of this symbol's controls.")
@click.option("--organization", is_flag=True, help="Changes of the organization's trading state.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many of the newest.")
@with_session
def history(session: Session, symbol: str | None, organization: bool, limit: int) -> None:
    """List who changed which control, and when."""
    if organization and symbol:
        raise click.UsageError("--symbol is about an account, not about the organization")
    client, size = session.client if organization else session.account_client, min(limit, 500)
    found = client.controls.organization_history(page_size=size) if organization else None
    newest = list(islice(found or client.controls.history(symbol=symbol, page_size=size), limit))
    if session.out.as_json:
        session.out.document({"data": newest})
        return
    names = key_names(client)
    rows = [change_row(change, names) for change in reversed(newest)]
    session.out.table(CHANGE_TITLES, rows, empty="no changes")


def if_there(read: Callable[[], T]) -> T | None:
    """What was never set is not found."""
    from tip_client import NotFound

    try:
        return read()
    except NotFound:
        return None


def is_removed(remove: Callable[[str], None], symbol: str) -> bool:
    from tip_client import NotFound

    try:
        interruptible(None, partial(remove, symbol))
    except NotFound:
        return False
    return True


def show(session: Session, control: "SymbolManualControl | SymbolTimeControl") -> None:
    session.out.result(control_json(control), symbol_text(control))
