"""Orders that a broker does not show, or in no form that can be read: they hide no other, and no fill counts twice."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from intents.execution import recorder, store
from intents.execution.account_reading import read_account
from intents.execution.model.inputs import BrokerReport
from intents.execution.model.known_orders import Holdings, KnownOpenOrder, ReadingStart
from intents.execution.order_queries import OrderQueries
from intents.execution.reconciliation import MOST_BROKEN, AccountReconciliation
from tip_brokers import ClientIds, CredentialRefused, Order, OrderStatus, OutcomeUnknown, Refused
from tip_brokers.protocol import BROKEN_ANSWER
from tip_testing.commands import create

from ..broker_side import accept
from .showing import Shows, unanswered
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


def read_and_save(desk: Any, shown: Shows) -> None:
    with desk.deps.engine.begin() as tx:
        start = store.begin_reading(tx, desk.account_id)
        account = AccountReconciliation(desk.account_id, shown, start.orders)  # type: ignore[arg-type]
        _, holdings = read_account(account, start)
        store.save_holdings(tx, desk.account_id, holdings)


def record(desk: Any, order: Order) -> None:
    recorder.record(desk.deps.connections, [BrokerReport(desk.account_id, order, datetime.now(UTC))])


def held(desk: Any) -> list[Decimal]:
    return [row["quantity"] for row in desk.rows("position")]


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


def test_one_that_was_given_up_has_its_turn_also_where_many_orders_cannot_be_read():
    """Whenever a reading broke off before it, it would otherwise be queried much later, and later each time."""
    now = datetime.now(UTC)
    made = Order("tip-1", "b9", OrderStatus.WORKING, "ABC", "BUY", "Market", Decimal(10), Decimal(0), None, now, now)

    class Surfaced(Shows):
        client_ids = ClientIds.UNIQUE

        def find(self, _client_order_id: str, _symbol: str) -> Order:
            return made

    broken = [
        KnownOpenOrder(f"tip-{number}", f"b{number}", "WORKING", Decimal(0), now, key=f"tip-{number}")
        for number in range(2, 2 + MOST_BROKEN)
    ]
    given_up = KnownOpenOrder("tip-1", None, "MISSING", Decimal(0), now, key="tip-1")
    shown, queries = Surfaced(**{known.broker_order_id: BROKEN for known in broken}), OrderQueries()

    found = [AccountReconciliation(uuid4(), shown, [*broken, given_up], queries).differences() for _ in range(2)]

    assert [[report.order.broker_order_id for report in reports] for reports in found] == [[], ["b9"]]


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


class Turning(Shows):
    """Shows something else from the second listing on."""

    def __init__(self, *orders: Order, then: Callable[["Turning"], None]) -> None:
        super().__init__(*orders)
        self._then = then

    def open_orders(self) -> tuple[Order, ...]:
        listed = super().open_orders()
        self._then(self)
        return listed


@pytest.mark.parametrize("answer", [REFUSED, BROKEN, None], ids=["refused", "broken", "absent"])
@pytest.mark.parametrize("client_ids", [ClientIds.UNIQUE, ClientIds.NONE])
def test_what_was_shown_of_an_order_a_moment_ago_says_nothing_once_it_cannot_be_read(desk, answer, client_ids):
    """Another one is filled, so that the account is read twice."""
    first, second = accepted(desk, 2)

    def turn(broker: Turning) -> None:
        broker.open, broker.others = (filled(first, 4),), {"b1": answer}

    shown = Turning(filled(first, 4), second, then=turn)
    shown.client_ids = client_ids

    assert read(desk, shown).filled == {first.client_order_id: 4}
    assert shown.calls["positions"] == 2


def test_an_order_that_has_surfaced_is_read_as_often_as_its_account():
    """What was shown of it first would say nothing of what the positions contain that are read after that."""
    now = datetime.now(UTC)
    made = Order("tip-1", "b1", OrderStatus.WORKING, "ABC", "BUY", "Market", Decimal(10), Decimal(0), None, now, now)

    class Surfacing(Shows):
        client_ids = ClientIds.UNIQUE

        def find(self, _client_order_id: str, _symbol: str) -> Order:
            self.calls["find"] += 1
            return filled(made, 4 * self.calls["find"])

    given_up = KnownOpenOrder("tip-1", None, "MISSING", Decimal(0), now, key="tip-1")
    shown = Surfacing()

    account = AccountReconciliation(uuid4(), shown, [given_up])
    found, holdings = read_account(account, ReadingStart(now, 0, [given_up]))

    assert shown.calls["find"] == shown.calls["positions"] == 3
    assert ([report.order.filled_quantity for report in found], holdings.filled) == ([12], {})


@pytest.mark.parametrize("is_answered", [False, True], ids=["in flight", "between two lists"])
def test_a_fill_that_a_broker_shows_in_positions_before_its_order_counts_once(desk, is_answered):
    """No order can be queried by our id there, and that none is found by the broker's proves nothing."""
    [made] = accepted(desk)
    if not is_answered:
        unanswered(desk)

    read_and_save(desk, Shows(held={"ABC": 10}, b0=None))
    record(desk, filled(made))

    assert held(desk) == [10]
    read_and_save(desk, Shows(held={"ABC": 10}))
    assert held(desk) == [10]


def test_while_an_order_waits_for_an_operator_its_symbol_has_the_fills_that_are_recorded_and_others_are_read(desk):
    [made] = accepted(desk)
    record(desk, filled(made, 4))
    unanswered(desk)

    read_and_save(desk, Shows(held={"ABC": 10, "XYZ": 3}))

    assert {row["symbol"]: row["quantity"] for row in desk.rows("position")} == {"ABC": 4, "XYZ": 3}


def test_an_order_that_was_not_sent_and_waits_does_not_keep_its_symbol_from_being_read(desk):
    """It may wait for this very reading, with POSITION_UNKNOWN."""
    accepted(desk)
    unanswered(desk)
    desk.execute("UPDATE intents.intent SET submit_started_at = NULL WHERE account_id = :account_id")

    read_and_save(desk, Shows(held={"ABC": 3}))

    assert held(desk) == [3]


def test_once_an_operator_has_said_that_an_order_never_arrived_its_symbol_is_read_again(desk):
    accepted(desk)
    unanswered(desk, "MISSING")

    read_and_save(desk, Shows(held={"ABC": 3}))

    assert held(desk) == [3]


@pytest.mark.parametrize("answer", [None, BROKEN, REFUSED], ids=["absent", "broken", "refused"])
def test_an_order_that_its_broker_shows_no_more_is_lost_until_it_is_shown_again(desk, answer):
    [made] = accepted(desk)
    queries = OrderQueries(lost_seconds=0)

    def read_again(shown: Shows) -> list[str]:
        AccountReconciliation(desk.account_id, shown, known_open_orders(desk), queries).differences()
        return queries.lost()

    assert read_again(Shows(b0=answer)) == [made.client_order_id]
    assert read_again(Shows(made)) == []
    patient = OrderQueries()
    AccountReconciliation(desk.account_id, Shows(b0=answer), known_open_orders(desk), patient).differences()
    assert patient.lost() == []


def test_what_is_in_flight_is_not_lost(desk):
    """Its command has an outcome, and says by itself that it needs an operator."""
    accepted(desk)
    unanswered(desk)
    queries = OrderQueries(lost_seconds=0)

    AccountReconciliation(desk.account_id, Shows(), known_open_orders(desk), queries).differences()

    assert queries.lost() == []


@pytest.mark.parametrize("others", [{}, {"b0": REFUSED}], ids=["in flight", "refused"])
def test_an_order_that_cannot_be_read_has_its_account_read_no_more_often(desk, others):
    accepted(desk)
    if not others:
        unanswered(desk)
    shown = Shows(**others)

    assert read(desk, shown).filled == {}
    assert shown.calls["positions"] == shown.calls["open_orders"] == 1
