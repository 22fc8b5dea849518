"""A fill counts once.

The largest total that the broker has reported for an order is believed; where an update has none, the executions of
the order count, each once by its id. So nothing is counted twice, whatever comes late, twice, out of
order, only by reconciliation, or under two ids.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from intents.execution.model.locked_intent import BrokerOrder
from intents.execution.model.settlement import Settlement, apply_report, event
from intents.execution.model.verdicts import OVERFILLED
from intents.model import TERMINAL, Update, reports
from intents.model.reports import Report
from tip_brokers.protocol import Execution, Order

_ZERO = Decimal(0)


class Fill(NamedTuple):
    """So much of an order at that price; `execution` if it is one that the broker has named."""

    quantity: Decimal
    price: Decimal | None
    execution: Execution | None


def new_fills(known: BrokerOrder, order: Order, execution: Execution | None) -> list[Fill]:
    """What is new of the order's fills. One bears the name of an execution only if it is just that execution."""
    named = _note_execution(known, execution)
    filled = max(known.filled_quantity, order.filled_quantity or known.executed_quantity)
    quantity = filled - known.filled_quantity
    if quantity <= 0:
        return []
    is_priced = _is_priced(known)
    value = _value_of(known, order, execution, filled)
    known.filled_quantity, known.filled_value = filled, _total_value(known, order, filled, value)
    if named is None or quantity < named.quantity:
        return [Fill(quantity, _price(value, quantity), None)]
    fill = Fill(named.quantity, named.price, named)
    missed = quantity - named.quantity  # by updates that did not come, or not yet
    if not missed:
        return [fill]
    difference = _price(value - named.quantity * named.price, missed)
    return [Fill(missed, difference if is_priced else order.average_price or named.price, None), fill]


def _note_execution(known: BrokerOrder, execution: Execution | None) -> Execution | None:
    """The execution, if it is new to the order."""
    if execution is None or execution.id in known.executions:
        return None
    known.executions.add(execution.id)
    known.executed_quantity += execution.quantity
    return execution


def _value_of(known: BrokerOrder, order: Order, execution: Execution | None, filled: Decimal) -> Decimal:
    """Of what is new. Two averages say what lies between them only if the first is of all that was filled by then."""
    quantity, average = filled - known.filled_quantity, _average(order, filled)
    if execution and execution.quantity == quantity:
        return quantity * execution.price
    if average is not None:
        return average * filled - known.filled_value if _is_priced(known) else average * quantity
    return quantity * (execution.price if execution else order.average_price or _ZERO)


def _total_value(known: BrokerOrder, order: Order, filled: Decimal, value: Decimal) -> Decimal:
    """Of all that is filled; zero as long as the price of a part of it is not known."""
    if _is_priced(known) and value > 0:
        return known.filled_value + value
    return filled * (_average(order, filled) or _ZERO)


def _average(order: Order, filled: Decimal) -> Decimal | None:
    """The price of all that is filled, as the order itself shows it."""
    return order.average_price if filled == order.filled_quantity else None


def _is_priced(known: BrokerOrder) -> bool:
    return known.filled_value > 0 or known.filled_quantity == 0


def _price(value: Decimal, quantity: Decimal) -> Decimal | None:
    return value / quantity if value > 0 else None


def apply_fill(
    settlement: Settlement, known: BrokerOrder, moment: datetime, fill: Fill, *, is_last: bool = False
) -> None:
    """`is_last`: by the broker's word. Of an order by its notional nothing else says that it is filled."""
    intent = settlement.intent
    total = intent.filled_quantity + fill.quantity
    whole = is_last if intent.spec.notional is not None else total >= intent.quantity
    report = Report(
        Update.FILLED if whole else Update.PARTIALLY_FILLED,
        moment,
        execution_id=fill.execution.id if fill.execution else None,
        last_quantity=fill.quantity,
        last_price=fill.price,
        reason_code=overfill_code(settlement, total),
        outcome=intent.outcome if intent.status not in TERMINAL and not whole else None,
    )
    if apply_report(settlement, report):
        append_trade(settlement, known, report)


def overfill_code(settlement: Settlement, total: Decimal) -> str | None:
    intent = settlement.intent
    return OVERFILLED if intent.spec.notional is None and total > intent.quantity else None


def append_trade(settlement: Settlement, known: BrokerOrder, report: Report) -> None:
    """The trade before the order event that it caused, and the position by as much."""
    payload = reports.broker_trade(settlement.intent, report) | {"broker_order_id": known.broker_order_id}
    trade = event(settlement, "BROKER_TRADE", payload, report.occurred_at) | {"execution_id": report.execution_id}
    settlement.events.insert(len(settlement.events) - 1, trade)
    if known.in_former_account:
        return
    quantity = report.last_quantity or _ZERO
    moved = quantity if settlement.intent.order_side == "BUY" else -quantity
    _change_position(settlement, known.key, moved, price=report.last_price, moment=report.occurred_at)


def append_position(settlement: Settlement, moment: datetime, execution: Execution) -> None:
    """The position after the execution, if the broker reports it, whichever source reported the fill first."""
    stands = execution.position_quantity
    if stands is None:
        return
    _change_position(settlement, None, _ZERO, price=execution.price, moment=moment, stands=stands)
    payload = {
        "symbol": settlement.intent.symbol,
        "quantity": format(stands, "f"),
        "last_price": format(execution.price, "f"),
    }
    settlement.events.append(event(settlement, "BROKER_POSITION", payload, moment))


def _change_position(
    settlement: Settlement,
    key: str | None,
    moved: Decimal,
    *,
    price: Decimal | None,
    moment: datetime,
    stands: Decimal | None = None,
) -> None:
    """`moment` is when the price was made, however late it comes. What is not above zero is no price."""
    symbol = settlement.intent.symbol
    change: dict[str, Any] = {
        "rank": settlement.rank, "symbol": symbol, "key": key, "moved": moved, "stands": stands,
    }  # fmt: skip
    priced = {"price": price, "price_at": moment} if price and price > 0 else {"price": None, "price_at": None}
    settlement.position_changes.append(change | priced)
