"""`tip limits`"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tip.amounts import AMOUNT
from tip.confirm import confirm_live, yes_option
from tip.control_text import set_limits
from tip.controls import if_there
from tip.exits import Failure
from tip.limit_usage import Used, account_usage, symbol_usage
from tip.lookup import not_empty
from tip.plain import json_of
from tip.sending import interruptible
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.controls import AccountLimits, SymbolLimits

    Limits = AccountLimits | SymbolLimits

F = TypeVar("F", bound=Callable[..., Any])

TITLES = ("FOR", "LIMIT", "VALUE", "USED")
COUNT = click.IntRange(min=1)
AMOUNTS = {
    "max_quantity": "The quantity of one order.",
    "max_notional": "What one order is worth.",
    "max_position_quantity": "The quantity of a position, with open orders.",
    "max_position_notional": "What a position is worth, with open orders.",
    "max_gross_exposure": "What all positions are worth. Of the account alone.",
    "max_daily_loss": "What may be lost in a day. Of the account alone.",
}
COUNTS = {
    "price_collar_bps": "How far from the market a limit price may be, in hundredths of a percent.",
    "max_orders_per_minute": "Orders accepted within 60 seconds.",
    "max_orders_per_day": "Orders accepted within 24 hours.",
    "max_open_orders": "Orders that are open.",
}
SYMBOLS = {
    "allowed_symbols": "Only these, such as AAPL,MSFT. Of the account alone.",
    "denied_symbols": "All but these. Of the account alone.",
}
FLAGS = {"allow_short": "Whether a position may be short."}
NAMES = tuple({**AMOUNTS, **COUNTS, **SYMBOLS, **FLAGS})
OF_ACCOUNTS = frozenset({"max_gross_exposure", "max_daily_loss", *SYMBOLS})

_symbol_option = click.option("--symbol", callback=not_empty, help="The limits of a symbol, not of the account.")


def _word(name: str) -> str:
    return name.replace("_", "-")


def _symbols(_ctx: click.Context, _option: click.Parameter, text: str | None) -> list[str] | None:
    return None if text is None else [symbol for symbol in text.replace(",", " ").split() if symbol]


def _limit_options(function: F) -> F:
    """One for each limit."""
    for name, text in reversed(FLAGS.items()):
        function = click.option(f"--{_word(name)}/--no-{_word(name)}", default=None, help=text)(function)
    for name, text in reversed(SYMBOLS.items()):
        function = click.option(f"--{_word(name)}", callback=_symbols, metavar="SYMBOLS", help=text)(function)
    for kind, limits in ((COUNT, COUNTS), (AMOUNT, AMOUNTS)):
        for name, text in reversed(limits.items()):
            function = click.option(f"--{_word(name)}", type=kind, help=text)(function)
    return function


@click.group(invoke_without_command=True)
@with_session
def command(session: Session) -> None:
    """Show, set and remove limits of an account and of its symbols.

    How much of a limit is used is what the platform counts now, open orders included. Changes on a live account ask for
    confirmation.
    """
    if not click.get_current_context().invoked_subcommand:
        show_limits(session, None)


@command.command("show")
@_symbol_option
@with_session
def show_command(session: Session, symbol: str | None) -> None:
    """Show the limits, and how much of each is used."""
    show_limits(session, symbol)


@command.command("set")
@_symbol_option
@_limit_options
@yes_option
@with_session
def set_command(session: Session, /, symbol: str | None, yes: bool, **values: Any) -> None:
    """Set limits; those that are not given stay as they are."""
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        raise click.UsageError("give at least one limit")
    if symbol and (wrong := OF_ACCOUNTS & given.keys()):
        raise click.UsageError(f"--{_word(min(wrong))} is a limit of the account: leave --symbol out")
    confirm_live(session, f"Limits of {symbol or 'all orders'} on {{account}} change", yes=yes)
    former = limits_of(session, symbol)
    kept = set_limits(vars(former)) if former else {}
    show_changed(session, symbol, put(session, symbol, {**kept, **given}, former))


@command.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[LIMIT]...")
@_symbol_option
@yes_option
@with_session
def remove(session: Session, names: tuple[str, ...], symbol: str | None, yes: bool) -> None:
    """Remove limits: those that are named, such as max_quantity, or all of the account or of the symbol."""
    confirm_live(session, f"Limits of {symbol or 'all orders'} on {{account}} are removed", yes=yes)
    former = limits_of(session, symbol)
    held = set_limits(vars(former)) if former else {}
    if former is None or (names and not held.keys() & set(names)):
        raise Failure("there is no such limit", code="not_found", hint="`tip limits` shows them")
    left = {name: value for name, value in held.items() if names and name not in names}
    if left:
        show_changed(session, symbol, put(session, symbol, left, former))
        return
    interruptible(None, lambda: _remove_all(session, symbol))
    session.out.result({"symbol": symbol, "removed": sorted(held)}, f"{symbol or 'the account'} has no limits")


def limits_of(session: Session, symbol: str | None) -> "Limits | None":
    controls = session.account_client.controls
    return if_there(lambda: controls.symbol_limits(symbol)) if symbol else if_there(controls.limits)


def put(session: Session, symbol: str | None, limits: dict[str, Any], former: "Limits | None") -> "Limits":
    """All at once, and only if nobody has changed them since they were read."""
    controls, version = session.account_client.controls, former.version if former else None
    if symbol:
        return interruptible(None, lambda: controls.set_symbol_limits(symbol, if_match=version, **limits))
    return interruptible(None, lambda: controls.set_limits(if_match=version, **limits))


def _remove_all(session: Session, symbol: str | None) -> None:
    controls = session.account_client.controls
    if symbol:
        controls.remove_symbol_limits(symbol)
    else:
        controls.remove_limits()


def show_changed(session: Session, symbol: str | None, limits: "Limits") -> None:
    shown = ", ".join(f"{name} {value_text(value)}" for name, value in set_limits(json_of(limits)).items())
    session.out.result(limits, f"limits of {symbol or 'the account'} (v{limits.version}): {shown}")


def show_limits(session: Session, symbol: str | None) -> None:
    found = list(with_usage(session, symbol))
    if session.out.as_json:
        session.out.document({"data": [{"limits": limits, "used": used} for limits, used in found]})
        return
    rows = [row for limits, used in found for row in limit_rows(limits, used)]
    session.out.table(TITLES, rows, right=("VALUE", "USED"), empty="no limits")


def with_usage(session: Session, symbol: str | None) -> list[tuple["Limits", Used]]:
    """Those of the account first, then those of each symbol that has any."""
    client = session.account_client
    account = None if symbol else if_there(client.controls.limits)
    symbols = [found.limits for found in client.controls.symbols() if found.limits]
    wanted = [limits for limits in symbols if symbol is None or limits.symbol == symbol.upper()]
    of_account: list[tuple[Limits, Used]] = [(account, account_usage(client, account))] if account else []
    return of_account + [(limits, symbol_usage(client, limits)) for limits in wanted]


def limit_rows(limits: "Limits", used: Used) -> list[tuple[str, ...]]:
    whose, values = getattr(limits, "symbol", "account"), set_limits(json_of(limits))
    return [(whose, name, value_text(value), used_text(used.get(name), value)) for name, value in values.items()]


def value_text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def used_text(used: Any, limit: Any) -> str:
    """`3 (30 %)`."""
    return "-" if used is None else f"{json_of(used)} ({float(used) / float(limit):.0%})".replace("%", " %")
