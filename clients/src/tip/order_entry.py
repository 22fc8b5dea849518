"""What `buy`, `sell` and `preview` share: the options of an order, and the way from submit to outcome."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tip.amounts import AMOUNT
from tip.exits import REFUSED
from tip.order_text import outcome_line
from tip.plain import short
from tip.sending import accepted, interruptible, once
from tip.session import Session

if TYPE_CHECKING:
    from tip_client import Order

F = TypeVar("F", bound=Callable[..., Any])

WAIT_S = 30.0

_TERMS = (
    click.argument("symbol"),
    click.argument("quantity", type=AMOUNT, required=False),
    click.option("--notional", type=AMOUNT, metavar="AMOUNT", help="For so much money, in place of a quantity."),
    click.option("--limit", type=AMOUNT, metavar="PRICE", help="Pay no more, or sell for no less."),
    click.option("--stop", type=AMOUNT, metavar="PRICE", help="Order only once this price is reached."),
    click.option("--trail", type=AMOUNT, metavar="AMOUNT", help="Order once the price has turned by so much."),
    click.option("--trail-percent", type=AMOUNT, metavar="PERCENT", help="The same in percent of its best since."),
    click.option("--time-in-force", "--tif", type=click.Choice(["DAY", "GTC", "IOC", "FOK"]), help="By default DAY."),
)
_SUBMIT = (
    click.option("--client-id", help="Your own id of the order, unique in the account."),
    click.option("--tag", "tags", multiple=True, help="May be given several times."),
    click.option("--route", "route_strategy", type=click.Choice(["AUTO", "DIRECT"])),
    click.option("--extended-hours", is_flag=True, help="Trade it outside the regular hours, too."),
    click.option("--take-profit", type=AMOUNT, metavar="PRICE", help="Once it is filled, close it at this price."),
    click.option("--stop-loss", type=AMOUNT, metavar="PRICE", help="Once it is filled, close it if this is reached."),
)
_WAIT = (
    click.option("--wait", is_flag=True, help="Wait until the order has ended; exit code 4 if it has not in time."),
    click.option("--timeout", type=click.FloatRange(min=0), default=WAIT_S, show_default=True, help="Seconds to wait."),
)
_ONCE = (
    click.option(
        "--idempotency-key", help="Repeats a command whose outcome was unknown: within 24 hours it is done once."
    ),
)


def options(*groups: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


terms = options(_TERMS)
submit_options = options(_TERMS, _SUBMIT, _WAIT, _ONCE)
wait_options = options(_WAIT)
command_options = options(_WAIT, _ONCE)


def enter(
    session: Session, side: str, *, wait: bool, timeout: float, idempotency_key: str | None, **order: Any
) -> None:
    """Submit an order, with the exits that are given, and print what became of it."""
    from tip_client import Side
    from tip_client.order_groups import with_exits
    from tip_client.orders import order_of

    key, exits = once(idempotency_key), {name: order.pop(name) for name in ("take_profit", "stop_loss")}
    wanted = with_exits(order_of(side=Side(side), **order), **exits)
    made = interruptible(key, lambda: session.account_client.submit(wanted, idempotency_key=key))
    settle(session, made, key, timeout if wait else None)


def settle(session: Session, order: "Order", key: str, timeout: float | None, wanted: str = "FILLED") -> None:
    """Print the order as it is, or once it has ended; one that ended otherwise than wanted is a failure."""
    known = short(order.intent_id)
    hint = f"do not repeat it: `tip show {known}` follows it up, `tip cancel {known}` ends it"
    with accepted(f"the command about intent {known} was accepted", hint, key, intent_id=order.intent_id):
        ended = order if timeout is None else waited(session, order, timeout)
        show(session, ended, timeout is None or ended.status == wanted)
    if timeout is not None and ended.status != wanted:
        raise SystemExit(REFUSED)


def waited(session: Session, order: "Order", timeout: float) -> "Order":
    from tip_client import Timeout

    try:
        return order.wait(timeout=timeout)
    except Timeout:
        if session.out.as_json:
            session.out.document(order.refresh())
        raise


def show(session: Session, order: "Order", is_good: bool = True) -> None:
    if session.out.as_json:
        session.out.document(order)
        return
    session.out.line(outcome_line(order, trace_of(order)), mark="✓" if is_good else "✗")


def trace_of(order: "Order") -> str | None:
    """None if there is none, or the caller may not read it: a key may submit and not read."""
    from tip_client import TipError

    try:
        return next((entry.trace_id for entry in order.timeline() if entry.trace_id), None)
    except TipError:
        return None
