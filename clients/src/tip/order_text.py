"""Orders and what happens to them, in a line each."""

from typing import TYPE_CHECKING

from tip.moments import age, clock
from tip.plain import amount, short

if TYPE_CHECKING:
    from tip_client import Event, Order, OrderSpec, OrderUpdate
    from tip_client.models.trading import BulkRecord, OrderRecord, OrderState

ORDER_TITLES = ("TIME", "ID", "SIDE", "QUANTITY", "SYMBOL", "PRICE", "STATUS", "FILLED", "AVERAGE", "REASON")
ORDER_NUMBERS = ("QUANTITY", "FILLED", "AVERAGE")


def order_row(order: "OrderRecord") -> tuple[str, ...]:
    state = order.state
    ordered = (str(order.order_side), size(order.spec), order.symbol, prices(order.spec))
    outcome = "outcome unknown" if state.outcome == "unknown" else None
    done = (str(state.status), amount(state.filled_quantity), amount(state.average_fill_price))
    return (clock(order.created_at), short(order.intent_id), *ordered, *done, state.reason_code or outcome or "-")


def prices(spec: "OrderSpec") -> str:
    """`limit 180`, `stop 240 limit 239.5`, `trail 5`, `trail 2.5%`, `market`."""
    parts = [("stop", spec.stop_price), ("limit", spec.limit_price), ("trail", spec.trail_amount)]
    named = [f"{name} {amount(price)}" for name, price in parts if price is not None]
    named += [] if spec.trail_percent is None else [f"trail {amount(spec.trail_percent)}%"]
    return " ".join(named) or "market"


def size(spec: "OrderSpec") -> str:
    """`1.5`, or `for 1000` of an order by its notional."""
    return amount(spec.quantity) if spec.notional is None else f"for {amount(spec.notional)}"


def described(side: object, spec: "OrderSpec | None", symbol: str) -> str:
    """`BUY 1 AAPL limit 180`."""
    if spec is None:
        return f"{side or '-'} {symbol}"
    return f"{side} {size(spec)} {symbol} {prices(spec)}"


def outcome_line(order: "Order", trace_id: str | None = None) -> str:
    """`FILLED 1 AAPL @ 179.98   80 ms   intent 93327def   trace 1744368c`."""
    state = order.state
    filled = f" @ {amount(state.average_fill_price)}" if state.average_fill_price is not None else ""
    what = f"{state.status} {_quantity(order)} {order.symbol}{filled}{_reason(state)}"
    took = age((state.updated_at - order.created_at).total_seconds()) if state.status.is_terminal else None
    parts = (what, took, f"intent {short(order.intent_id)}", f"trace {short(trace_id)}" if trace_id else None)
    return "   ".join(part for part in parts if part)


def _quantity(order: "Order") -> str:
    """`1`, or `0.4 of 1` where that much is filled, `9.9 for 1000` of an order by its notional."""
    ordered, filled = order.spec.quantity, order.state.filled_quantity
    if ordered is None:
        return f"{amount(filled)} {size(order.spec)}" if filled else size(order.spec)
    return f"{amount(filled)} of {amount(ordered)}" if filled and filled != ordered else amount(ordered)


def _reason(state: "OrderState") -> str:
    return f" ({state.reason_code})" if state.reason_code else ""


def bulk_line(operation: "BulkRecord") -> str:
    """`COMPLETED 3 of 3 orders ended   operation 1a2b3c4d`."""
    counted = f"{operation.status} {operation.done} of {operation.total} orders ended"
    return f"{counted}   operation {short(operation.id)}"


def event_line(event: "Event") -> str | None:
    """What an event says about an order; None of one that says nothing about any."""
    said = _said(event)
    return f"{clock(event.occurred_at)}  {said}" if said else None


def _said(event: "Event") -> str | None:
    import tip_client as tip

    match event:
        case tip.ActionAppended():
            what = described(event.order_side, event.spec, event.symbol)
            return f"{event.command.type:<16}  {what}   intent {short(event.intent_id)}"
        case tip.OrderUpdate():
            return f"{event.status:<16}  {_progress(event)}   intent {short(event.intent_id)}"
        case tip.Refusal():
            why = "; ".join(f"{reason.code}: {reason.message}" for reason in event.reasons)
            return f"{'REFUSED':<16}  {described(event.order_side, event.spec, event.symbol)}   {why}"
        case _:
            return None


def _progress(event: "OrderUpdate") -> str:
    side, done = f"{event.order_side} {amount(event.quantity)} {event.symbol}", amount(event.filled_quantity)
    average = f" @ {amount(event.average_fill_price)}" if event.average_fill_price is not None else ""
    filled = f"   {done} filled{average}" if event.filled_quantity else ""
    return f"{side}{filled}" + (f"   {event.reason_code}" if event.reason_code else "")
