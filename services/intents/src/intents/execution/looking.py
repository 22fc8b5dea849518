"""One look at one account: what the broker has is compared with what we believe, and the difference is recorded."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from sqlalchemy import Engine

from intents.brokers import Broker, Execution, Order, OrderStatus
from intents.execution import watching
from intents.execution.watching import Believed
from intents.execution.work import Heard

ONE_BY_ONE = 10  # up to so many orders are asked for by themselves, more by a list
CLOCKS_DIFFER = timedelta(minutes=1)


def differences(account_id: UUID, believed: Sequence[Believed], broker: Broker) -> list[Heard]:
    """What has to be recorded: executions first, each by its id, then the orders as they stand."""
    shown = {order.client_order_id: order for order in broker.open_orders()}
    ours = {one.client_order_id: one for one in believed}
    missing = [one for one in believed if one.client_order_id not in shown]
    current = {**{name: order for name, order in shown.items() if name in ours}, **_ended(broker, missing)}
    changed = [order for name, order in current.items() if _has_changed(ours[name], order)]
    elsewhere = [order for name, order in shown.items() if name not in ours]
    told = _executions(broker, [order for order in changed if _has_fills(ours[order.client_order_id], order)], believed)
    return [
        *(Heard(account_id, order, one.occurred_at, one, position_known=True) for order, one in told),
        *(Heard(account_id, order, order.updated_at, position_known=True) for order in (*changed, *elsewhere)),
    ]


def _ended(broker: Broker, missing: Sequence[Believed]) -> dict[str, Order]:
    """Orders that are no longer open at the broker, by our id."""
    found: dict[str, Order] = {}
    if len(missing) > ONE_BY_ONE:
        names = {one.client_order_id for one in missing}
        since = min(one.created_at for one in missing) - CLOCKS_DIFFER
        found = {order.client_order_id: order for order in broker.orders(since) if order.client_order_id in names}
    for one in missing:
        if one.client_order_id not in found and (order := broker.order(one.broker_order_id)):
            found[one.client_order_id] = order
    return found


def _has_changed(known: Believed, order: Order) -> bool:
    return order.status != known.status or _has_fills(known, order)


def _has_fills(known: Believed, order: Order) -> bool:
    return order.filled_quantity > known.filled_quantity


def _executions(
    broker: Broker, filled: Sequence[Order], believed: Sequence[Believed]
) -> Iterable[tuple[Order, Execution]]:
    """Each execution of these orders, with its order as it stood then: so each counts for what it brought."""
    if not filled:
        return
    by_id = {order.broker_order_id: order for order in filled}
    totals = dict.fromkeys(by_id, Decimal(0))
    names = {order.client_order_id for order in filled}
    since = min(one.created_at for one in believed if one.client_order_id in names) - CLOCKS_DIFFER
    for one in broker.executions(since):
        if order := by_id.get(one.broker_order_id):
            totals[one.broker_order_id] += one.quantity
            total = totals[one.broker_order_id]
            yield replace(order, status=OrderStatus.WORKING, filled_quantity=total, average_price=None), one


def look(engine: Engine, account_id: UUID, broker: Broker) -> tuple[list[Heard], int | None]:
    """The differences to record. What the account holds is saved on the way: how far its log has come by that."""
    asked_at: datetime = watching.now(engine)
    found = differences(account_id, watching.believed_open(engine, account_id), broker)
    return found, watching.save_holdings(engine, account_id, broker.positions(), broker.balance(), asked_at)
