"""One command and a broker that does what brokers do: what is queried before, what is sent, what is believed after."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from intents.execution.clock import elapsed
from intents.execution.dispatch import ABSENCES_TO_GIVE_UP, Dispatch, QueryFailed
from intents.execution.model.commands import ClaimSnapshot, KnownOrder, LeasedCommand
from intents.execution.model.verdicts import Decided, OrderFound, Rejected, RetryLater, Unknown
from intents.model import Spec, Status
from tip_brokers import (
    Change,
    ClientIds,
    DuplicateClientOrderId,
    NewOrder,
    NotSent,
    NotWritten,
    Order,
    OrderStatus,
    OutcomeUnknown,
    RateLimited,
    Refused,
)

from .sending import HALTED, NOW, leased_command, sending_facts

LONG_AGO = NOW - timedelta(minutes=5)


def command(*, age: float = 0.0, quantity: str = "10", **more: Any) -> LeasedCommand:
    claimed = elapsed() - age
    terms = {"quantity": quantity, "limit_price": "5", "time_in_force": "DAY"}
    snapshot = ClaimSnapshot(claimed, 1, "AUTO", None, 1, NOW, 1, 0, None)
    return leased_command(**{"spec": Spec("Limit", terms), "lease_ends": claimed + 60, "snapshot": snapshot} | more)


def shown(number: str, filled: int = 0, status: OrderStatus = OrderStatus.WORKING, **more: Any) -> Order:
    name = more.pop("name", f"name of {number}")
    return Order(name, number, status, "ABC", "BUY", "Limit", Decimal(10), Decimal(filled), None, NOW, NOW, **more)


@dataclass
class Market:
    """A broker by a few tables: what it has, and what goes wrong."""

    orders: dict[str, Order] = field(default_factory=dict)
    client_ids: ClientIds = ClientIds.UNIQUE
    call_seconds: float = 4.0
    errors: dict[str, Exception] = field(default_factory=dict)
    sent: list[Any] = field(default_factory=list)
    before_replace: Callable[[], None] = lambda: None

    def _do(self, verb: str, what: Any, check: Callable[[], None] = lambda: None) -> None:
        check()
        if verb in ("create", "replace", "cancel"):
            self.sent.append(what)
        if error := self.errors.get(verb):
            raise error

    def create(self, order: NewOrder, check: Any) -> Order:
        self._do("create", order, check)
        made = shown("b1", name=order.client_order_id)
        self.orders["b1"] = made
        return made

    def replace(self, broker_order_id: str, change: Change, check: Any) -> Order:
        self.before_replace()
        self._do("replace", change, check)
        old = self.orders[broker_order_id]
        self.orders[broker_order_id] = replace(old, status=OrderStatus.REPLACED, replaced_by="new")
        self.orders["new"] = shown("new", name=change.client_order_id)
        return self.orders["new"]

    def cancel(self, broker_order_id: str, check: Any) -> None:
        self._do("cancel", broker_order_id, check)
        self.orders[broker_order_id] = replace(self.orders[broker_order_id], status=OrderStatus.CANCELED)

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        self._do("find", client_order_id)
        return next((order for order in self.orders.values() if order.client_order_id == client_order_id), None)

    def order(self, broker_order_id: str) -> Order | None:
        self._do("order", broker_order_id)
        return self.orders.get(broker_order_id)


def run(market: Market, given: LeasedCommand, refresh: Any = lambda command: command) -> Any:
    return Dispatch(market, given, refresh).run()


def test_a_resend_that_is_refused_for_another_reason_is_settled_by_what_the_broker_has():
    """The first send holds the buying power that the second one lacks."""
    given = command(started_before=LONG_AGO)
    there = shown("b1", name=given.client_order_id)
    market = Market(errors={"create": Refused("INSUFFICIENT_BUYING_POWER", "insufficient buying power")})
    finds = iter([None, there])
    market.find = lambda _name, _symbol: next(finds)  # type: ignore[method-assign]

    assert run(market, given) == OrderFound(there)


def test_a_resend_that_is_refused_and_not_there_is_refused():
    market = Market(errors={"create": Refused("INSUFFICIENT_BUYING_POWER", "insufficient buying power")})

    assert run(market, command(started_before=LONG_AGO)) == Rejected(
        "INSUFFICIENT_BUYING_POWER", "insufficient buying power"
    )


@pytest.mark.parametrize("error", [RateLimited("rate_limited", 1.0), NotSent("connection_refused")])
@pytest.mark.parametrize("verb", ["CREATE", "REPLACE", "CANCEL"])
def test_what_was_sent_stays_sent_whatever_the_next_query_meets(verb, error):
    market = Market({"b1": shown("b1")})
    market.errors = {
        "create": DuplicateClientOrderId("DUPLICATE_CLIENT_ORDER_ID", "must be unique"),
        "replace": Refused("BROKER_REFUSED", "no"),
        "find": error,
    }
    known = (KnownOrder("name of b1", "b1", False, Decimal(0)),)
    if verb == "CANCEL":
        market.errors = {"order": error}

    with pytest.raises(QueryFailed) as failure:
        run(market, command(type=verb, broker_order_id=None if verb == "CREATE" else "b1", orders=known))

    assert isinstance(failure.value, OutcomeUnknown) and failure.value.__cause__ is error
    assert len(market.sent) == 1


@pytest.mark.parametrize("status", [OrderStatus.PENDING_CANCEL, OrderStatus.WORKING])
def test_a_cancel_that_is_refused_while_one_is_under_way_is_not_reported_as_refused(status):
    there = shown("b1", status=status)
    market = Market({"b1": there}, errors={"cancel": Refused("ORDER_NOT_FOUND", "is being canceled")})

    found = run(market, command(type="CANCEL", broker_order_id="b1"))

    refused = Rejected("ORDER_NOT_FOUND", "is being canceled", (there,))
    assert found == (OrderFound(there) if status is OrderStatus.PENDING_CANCEL else refused)


def replacing(total: str, *known: KnownOrder) -> LeasedCommand:
    return command(type="REPLACE", broker_order_id="b2", quantity=total, orders=known)


def test_a_replacement_orders_what_is_left_of_the_total_after_every_order_of_the_intent():
    """What was filled of the first order was not known here, nor what was filled just now of the second."""
    market = Market({"b1": shown("b1", 3, OrderStatus.REPLACED), "b2": shown("b2", 2)})
    given = replacing(
        "12", KnownOrder("c1", "b1", False, Decimal(0)), KnownOrder("c2", "b2", False, Decimal(1)),
        KnownOrder("c0", "b0", True, Decimal("1.5")), KnownOrder("c3", None, False, Decimal(0)),
    )  # fmt: skip

    verdict = run(market, given)

    assert [change.quantity for change in market.sent] == [Decimal("5.5")]
    assert {order.broker_order_id: order.filled_quantity for order in verdict.others} == {"b1": 3, "b2": 2}


def test_what_is_filled_while_it_is_being_replaced_is_seen_with_the_answer():
    market = Market({"b2": shown("b2", 2)})

    def fills() -> None:
        market.orders["b2"] = shown("b2", 4)

    market.before_replace = fills
    verdict = run(market, replacing("12", KnownOrder("c2", "b2", False, Decimal(2))))

    assert market.sent[0].quantity == 10
    [old] = verdict.others
    assert old.filled_quantity == 4 and old.status is OrderStatus.REPLACED


def test_a_replacement_that_the_broker_knows_already_and_does_not_show_yet_is_unknown():
    market = Market({"b2": shown("b2")}, errors={"replace": DuplicateClientOrderId("DUPLICATE", "must be unique")})

    verdict = run(market, replacing("12", KnownOrder("c2", "b2", False, Decimal(0))))

    assert verdict == Unknown("duplicate_not_found")


def test_a_read_that_fails_before_the_first_send_makes_nothing_unknown():
    market = Market({"b2": shown("b2")}, errors={"order": OutcomeUnknown("timeout")})

    with pytest.raises(NotSent):
        run(market, replacing("12", KnownOrder("c2", "b2", False, Decimal(0))))

    assert market.sent == []


def test_a_replacement_to_less_than_is_filled_is_refused_with_the_fills():
    market = Market({"b2": shown("b2", 5)})

    verdict = run(market, replacing("5", KnownOrder("c2", "b2", False, Decimal(2))))

    assert verdict == Rejected("QUANTITY_FILLED", "As much as that is filled already.", (shown("b2", 5),))
    assert market.sent == []


def test_facts_that_have_grown_old_are_read_again_before_anything_is_sent():
    market = Market()
    halted = lambda command: replace(command, facts=sending_facts(account_switch=HALTED))  # noqa: E731

    verdict = run(market, command(age=1.5), halted)

    assert isinstance(verdict, Decided) and verdict.code == "TRADING_HALTED" and market.sent == []


def test_nothing_is_sent_once_the_lease_is_anothers():
    market = Market()

    assert run(market, command(age=1.5), lambda _work: None) == RetryLater(0.0, "claimed_too_long_ago")
    assert market.sent == []


@pytest.mark.parametrize(("age", "lease"), [(1.1, 60.0), (0.0, 3.9)])
def test_the_last_check_is_where_the_request_is_written(age, lease):
    """A process that was stopped after everything else was checked: the age of the facts goes on meanwhile."""
    market, given = Market(), command()
    late = replace(given, snapshot=given.snapshot._replace(at=elapsed() - age), lease_ends=elapsed() + lease)

    def stopped(_work: LeasedCommand) -> LeasedCommand:
        return late

    with pytest.raises(NotWritten):
        Dispatch(market, late, stopped).check()

    assert isinstance(run(market, late, stopped), RetryLater) and market.sent == []


def test_a_cancel_goes_out_however_old_the_facts_are():
    market = Market({"b1": shown("b1")})
    given = command(age=30, type="CANCEL", broker_order_id="b1")

    assert run(market, given).order.status is OrderStatus.CANCELED


def test_what_may_have_been_sent_is_given_up_only_after_several_queries():
    canceled = {"started_before": LONG_AGO, "status": Status.PENDING_CANCEL}

    verdicts = [run(Market(), command(absences=count, **canceled)) for count in range(ABSENCES_TO_GIVE_UP + 1)]

    assert [isinstance(verdict, RetryLater) and verdict.absent for verdict in verdicts[:-1]] == [
        True
    ] * ABSENCES_TO_GIVE_UP
    assert isinstance(verdicts[-1], Decided) and verdicts[-1].code == "NOT_FOUND_AT_BROKER"


def test_where_an_order_cannot_be_queried_nothing_is_sent_twice():
    market = Market(client_ids=ClientIds.NONE)

    verdict = run(market, command(started_before=LONG_AGO, absences=ABSENCES_TO_GIVE_UP))

    assert isinstance(verdict, Unknown) and verdict.code == "OPERATOR_REQUIRED" and market.sent == []


@pytest.mark.parametrize("absences", range(ABSENCES_TO_GIVE_UP + 1))
def test_where_an_id_may_be_used_twice_it_is_sent_again_only_after_it_was_absent_several_times(absences):
    market = Market(client_ids=ClientIds.ECHO)

    verdict = run(market, command(started_before=LONG_AGO, absences=absences))

    assert len(market.sent) == (absences == ABSENCES_TO_GIVE_UP)
    assert market.sent or (isinstance(verdict, RetryLater) and verdict.absent)


@pytest.mark.parametrize("strategy", ["AUTO", "DIRECT"])
def test_the_adapter_is_told_how_an_order_is_routed(strategy):
    market, given = Market(), command()

    run(market, replace(given, snapshot=given.snapshot._replace(route_strategy=strategy)))

    assert [order.route_strategy for order in market.sent] == [strategy]
