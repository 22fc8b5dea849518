"""Orders that the broker shows under no client order id, or one of its own."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pytest

from intents.execution import reconciliation, recorder, store
from tip_brokers import ClientIds, Execution, Order
from tip_testing.commands import create

from ..broker_side import accept


class Unqueryable:
    """A broker that lists one order, and finds none by our ids."""

    client_ids = ClientIds.NONE

    def __init__(self, order: Order) -> None:
        self._order = order

    def open_orders(self) -> list[Order]:
        return [self._order]

    def executions(self, _after: datetime) -> list[Execution]:
        return []


@pytest.mark.parametrize("name", ["b1", "tip-0123456789abcdef0123456789abcdef", "anything"])
def test_an_order_that_the_broker_shows_without_our_id_is_recorded_as_ours(desk, name):
    order = accept(desk, desk.created(create("ABC"))["intent_id"], "b1")
    shown = replace(order, client_order_id=name, filled_quantity=Decimal(4), average_price=Decimal(1))
    with desk.deps.engine.connect() as tx:
        known = store.begin_reading(tx, desk.account_id).orders

    reports = reconciliation.AccountReconciliation(desk.account_id, Unqueryable(shown), known).differences()
    recorder.record(desk.deps.connections, reports)

    assert [row["filled_quantity"] for row in desk.rows("intent")] == [4]
    assert [row["client_order_id"] for row in desk.rows("broker_order")] == [order.client_order_id]
