"""Orders that a broker shows in no form that can be read: they hide no other."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from intents.execution.model.inputs import BrokerReport
from intents.execution.model.known_orders import Holdings, ReadingStart
from intents.execution.reconciliation import MOST_BROKEN, AccountReconciliation, OrderQueries, read_account
from tip_brokers import CredentialRefused, Order, OrderStatus, OutcomeUnknown, Refused
from tip_brokers.protocol import BROKEN_ANSWER
from tip_testing.commands import create

from ..broker_side import accept
from .showing import Shows
from .test_reconciliation import known_open_orders

REFUSED, BROKEN = Refused("UNKNOWN_SYMBOL", "no"), OutcomeUnknown(BROKEN_ANSWER)


def accepted(desk: Any, many: int = 1) -> list[Order]:
    return [accept(desk, desk.created(create("ABC", "10"))["intent_id"], f"b{number}") for number in range(many)]


def filled(order: Order, quantity: int = 10) -> Order:
    status = OrderStatus.FILLED if order.quantity == quantity else OrderStatus.WORKING
    return replace(order, status=status, filled_quantity=Decimal(quantity), average_price=Decimal(1))


def read(desk: Any, shown: Shows) -> Holdings:
    known = known_open_orders(desk)
    account = AccountReconciliation(desk.account_id, shown, known)  # type: ignore[arg-type]
    return read_account(account, ReadingStart(datetime.now(UTC), 0, known))[1]


@pytest.mark.parametrize("error", [REFUSED, BROKEN], ids=["refused", "broken"])
def test_an_order_that_cannot_be_read_hides_no_other(desk, error):
    _, second = accepted(desk, 2)
    shown = Shows(b0=error, b1=replace(second, status=OrderStatus.CANCELED))

    found = AccountReconciliation(desk.account_id, shown, known_open_orders(desk)).differences()

    assert [(report.order.broker_order_id, report.order.status) for report in found] == [("b1", "CANCELED")]


@pytest.mark.parametrize("error", [OutcomeUnknown("timeout"), CredentialRefused()])
def test_a_broker_that_does_not_answer_is_not_read_on(desk, error):
    accepted(desk)

    with pytest.raises(type(error)):
        AccountReconciliation(desk.account_id, Shows(b0=error), known_open_orders(desk)).differences()


def test_however_many_orders_can_never_be_read_the_others_have_their_turn(desk):
    *_, last = accepted(desk, 3 * MOST_BROKEN)
    shown = Shows(**{f"b{number}": BROKEN for number in range(3 * MOST_BROKEN)})
    shown.others["b8"] = replace(last, status=OrderStatus.CANCELED)
    queries, found = OrderQueries(), list[BrokerReport]()

    for _ in range(3):
        found += AccountReconciliation(desk.account_id, shown, known_open_orders(desk), queries).differences()

    assert {report.order.broker_order_id for report in found} == {"b8"}


def test_of_an_account_whose_orders_cannot_be_read_what_is_listed_is(desk):
    first, *_ = accepted(desk, 3 * MOST_BROKEN)
    shown = Shows(filled(first, 4), **{f"b{number}": BROKEN for number in range(1, 3 * MOST_BROKEN)})

    found = AccountReconciliation(desk.account_id, shown, known_open_orders(desk)).differences()

    assert [report.order.filled_quantity for report in found] == [4]
    assert shown.calls["order"] == MOST_BROKEN


def test_what_a_position_contains_of_an_order_that_cannot_be_read_is_not_known(desk):
    _, second = accepted(desk, 2)
    shown = Shows(b0=REFUSED, b1=replace(second, status=OrderStatus.CANCELED))

    assert set(read(desk, shown).filled) == {second.client_order_id}
