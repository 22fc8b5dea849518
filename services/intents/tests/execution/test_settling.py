"""Whatever comes late, twice or out of order: a fill counts once, and what ended stays ended."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intents.brokers import Execution, Order, OrderStatus, RejectionNotice
from intents.execution.client_order_id import client_order_id
from intents.execution.model import settling
from intents.execution.model.commands import ClaimSnapshot, LeasedCommand
from intents.execution.model.inputs import BrokerReport, DispatchResult, ExecutionInput, OutOfReach, Resolution
from intents.execution.model.locked_intent import BrokerOrder, Command, LockedIntent, Progress
from intents.execution.model.settlement import Settlement, apply_report
from intents.execution.model.settling import apply_input
from intents.execution.model.verdicts import Decided, OrderFound, Rejected, RetryLater, Unknown
from intents.model import Intent, Spec, Status, Update
from intents.model.reports import Report

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ACCOUNT, INTENT, CREATE, CHANGE = uuid4(), uuid4(), uuid4(), uuid4()
FIRST, SECOND = client_order_id(CREATE), client_order_id(CHANGE)
TOTAL = Decimal(10)
SYSTEM_CANCELS = "An order is open at the broker that the intent does not ask for; the system cancels it."


def spec(quantity: str = "10") -> Spec:
    return Spec("Limit", {"quantity": quantity, "limit_price": "5", "time_in_force": "DAY"})


def locked(status: Status = Status.PENDING, command: Command | None = None, **progress: Any) -> LockedIntent:
    accepted = status not in (Status.PENDING, Status.SUBMITTED)
    intent = Intent(
        id=INTENT, symbol="ABC", order_side="BUY", route_strategy="AUTO", spec=spec(), quantity=TOTAL, status=status,
        filled_quantity=Decimal(0), average_fill_price=None, broker_order_id="b1" if accepted else None,
        reason_code=None, outcome=None, version=1, created_at=NOW, updated_at=NOW,
    )  # fmt: skip
    first = BrokerOrder(FIRST, 1, "b1" if accepted else None, "STARTED", set(), *[Decimal(0)] * 3)
    create = Command(CREATE, 1, "CREATE", spec())
    values: dict[str, Any] = {
        "lease_token": None, "next_attempt_at": NOW, "submit_started_at": None, "accepted_at": None, "attempts": 0,
        "open_actions": 1 if command or not accepted else 0, "done_sequence": 0,
    }  # fmt: skip
    unsettled = command or (None if accepted else create)
    return LockedIntent(ACCOUNT, intent, {FIRST: first}, unsettled, Progress(**(values | progress)), NOW)


def begun(status: Status = Status.PENDING, command: Command | None = None, **progress: Any) -> Settlement:
    return Settlement.begin(locked(status, command, **progress))


def settle(one: Settlement, inputs: Iterable[ExecutionInput]) -> None:
    for each in inputs:
        apply_input(one, each)


def order(status: OrderStatus, filled: Decimal | int = 0, name: str = FIRST, number: str = "b1", **more: Any) -> Order:
    price = Decimal(5) if filled else None
    return Order(name, number, status, "ABC", "BUY", "Limit", TOTAL, Decimal(filled), price, NOW, NOW, **more)


def reported(
    shown: Order, execution: Execution | None = None, rejection: RejectionNotice | None = None
) -> BrokerReport:
    return BrokerReport(ACCOUNT, shown, NOW, execution, rejection)


def execution(number: int, quantity: Decimal | int) -> Execution:
    return Execution(f"e{number}", "b1", Decimal(quantity), Decimal(5), NOW)


def traded(one: Settlement) -> Decimal:
    trades = [event for event in one.events if event["type"] == "BROKER_TRADE"]
    return sum((Decimal(event["payload"]["quantity"]) for event in trades), Decimal(0))


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[BrokerReport], Decimal]:
    """All reports of an order filled in parts: each fill with and without its total, and reconciliations."""
    parts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    reports: list[BrokerReport] = []
    total = Decimal(0)
    for number, part in enumerate(parts):
        total += part
        status = OrderStatus.FILLED if total >= TOTAL else OrderStatus.WORKING
        whole, bare = order(status, total), order(OrderStatus.WORKING)
        reports += [reported(whole, execution(number, part)), reported(bare, execution(number, part)), reported(whole)]
    return draw(st.permutations(reports + draw(st.lists(st.sampled_from(reports), max_size=5)))), total


@given(stories())
@settings(max_examples=300, deadline=None)
def test_in_any_order_and_however_often_a_fill_counts_once(story):
    inputs, total = story
    one = begun()

    for each in inputs:
        settle(one, [each])
        assert one.intent.filled_quantity <= total

    assert one.intent.filled_quantity == traded(one) == total
    assert (one.intent.status is Status.FILLED) == (total >= TOTAL)
    assert one.intent.average_fill_price == 5


def test_what_an_order_shows_beyond_an_execution_that_is_known_is_a_trade_without_a_name():
    """The log has each execution once: a second trade under its id could not be written at all."""
    one = begun(Status.ACCEPTED)

    settle(one, [reported(order(OrderStatus.WORKING, total), execution(1, 4)) for total in (4, 9)])

    trades = [(one["execution_id"], one["payload"]["quantity"]) for one in one.events if one["type"] == "BROKER_TRADE"]
    assert trades == [("e1", "4"), (None, "5")]


@pytest.mark.parametrize("missed", [0, 3])
def test_a_trade_that_bears_the_name_of_an_execution_is_that_execution(missed):
    """Updates before it did not come: what they would have shown is a trade without a name."""
    one = begun(Status.ACCEPTED)

    settle(one, [reported(order(OrderStatus.WORKING, missed + 2), execution(7, 2))])

    trades = [(one["execution_id"], one["payload"]["quantity"]) for one in one.events if one["type"] == "BROKER_TRADE"]
    assert trades == ([(None, "3")] if missed else []) + [("e7", "2")]
    assert one.intent.filled_quantity == traded(one) == missed + 2
    assert one.intent.average_fill_price == 5


def test_an_order_that_no_credential_can_query_says_so_once():
    one = begun(Status.ACCEPTED)

    for _ in range(2):
        settle(one, [OutOfReach(ACCOUNT, FIRST)])

    assert one.intent.status is Status.ACCEPTED and one.intent.reason_code == "OPERATOR_REQUIRED"
    assert len(one.events) == 1
    settle(one, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    assert one.intent.status is Status.FILLED and one.intent.reason_code is None


def test_a_fill_shown_under_two_ids_counts_once():
    """A stream and an account's activities need not name a fill alike."""
    one = begun(Status.ACCEPTED)

    for number in (1, 2):
        settle(one, [reported(order(OrderStatus.WORKING, 4), execution(number, 4))])

    assert one.intent.filled_quantity == traded(one) == 4


@given(st.permutations(["fill", "canceled", "canceled again"]))
def test_a_fill_before_or_after_the_end_of_a_canceled_order_is_kept(story):
    one = begun(Status.ACCEPTED)
    inputs = {
        "fill": reported(order(OrderStatus.WORKING, 4), execution(1, 4)),
        "canceled": reported(order(OrderStatus.CANCELED, 0)),
        "canceled again": reported(order(OrderStatus.CANCELED, 4)),
    }

    settle(one, [inputs[name] for name in story])

    assert one.intent.status is Status.CANCELED and one.intent.filled_quantity == 4 == traded(one)


def test_more_than_was_ordered_is_shown():
    one = begun(Status.ACCEPTED)

    settle(
        one,
        [
            reported(order(OrderStatus.FILLED, 10), execution(1, 10)),
            reported(order(OrderStatus.FILLED, 12), execution(2, 2)),
        ],
    )

    assert one.intent.status is Status.FILLED and one.intent.filled_quantity == 12


def test_an_update_that_overtakes_the_answer_settles_the_command_and_the_answer_changes_nothing():
    one, token = begun(), uuid4()
    one.progress.lease_token = token
    settle(one, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    before = len(one.events)

    settle(one, [DispatchResult(leased(token), OrderFound(order(OrderStatus.PENDING)))])

    assert one.intent.status is Status.FILLED and one.progress.open_actions == 0
    assert len(one.events) == before and one.progress.lease_token is None


def leased(token: Any, **more: Any) -> LeasedCommand:
    values: dict[str, Any] = {
        "account_id": ACCOUNT, "organization_id": uuid4(),
        "intent_id": INTENT, "lease_token": token, "lease_ends": 0.0, "now": NOW,
        "action_id": CREATE, "type": "CREATE", "created_at": NOW, "symbol": "ABC", "order_side": "BUY", "spec": spec(),
        "quantity": TOTAL, "filled_quantity": Decimal(0), "status": Status.PENDING, "broker_order_id": None,
        "orders": (), "started_before": None, "attempts": 0, "absences": 0, "broker": "paper", "environment": "paper",
        "halted_by": None, "stale_millis": None, "credential": None, "bound_credential": None, "opened_account": None,
        "snapshot": ClaimSnapshot(0.0, 1, "AUTO", None, 1, NOW, 1, 0, None),
    }  # fmt: skip
    return LeasedCommand(**(values | more))


def test_under_a_lost_lease_what_was_seen_counts_and_what_was_decided_does_not():
    other = uuid4()
    one = begun(lease_token=other)

    for verdict in (Decided(Update.DENIED, "TRADING_HALTED", "halted"), Unknown("timeout"), RetryLater(9.0, "later")):
        settle(one, [DispatchResult(leased(uuid4()), verdict)])
    assert one.intent.status is Status.PENDING and not one.is_changed

    settle(one, [DispatchResult(leased(uuid4()), OrderFound(order(OrderStatus.WORKING)))])

    assert one.intent.status is Status.ACCEPTED and one.progress.lease_token == other


def test_an_unknown_outcome_is_shown_once_and_queried_after_five_seconds_then_every_two():
    token = uuid4()
    one = begun(submit_started_at=NOW)
    one.progress.lease_token = token
    settle(one, [DispatchResult(leased(token), Unknown("timeout"))])
    assert one.intent.status is Status.SUBMITTED and one.intent.outcome == "unknown"
    assert one.progress.next_attempt_at == NOW + timedelta(seconds=5)

    one.progress.lease_token, one.locked = token, replace(one.locked, now=NOW + timedelta(seconds=5))
    settle(one, [DispatchResult(leased(token, started_before=NOW), Unknown("timeout"))])

    assert one.progress.next_attempt_at == NOW + timedelta(seconds=7)
    assert len(one.events) == 1


def test_what_was_certainly_not_sent_is_as_if_it_had_never_been_tried():
    token = uuid4()
    one = begun(submit_started_at=NOW)
    one.progress.lease_token = token

    settle(one, [DispatchResult(leased(token), RetryLater(1.0, "rate_limited"))])

    assert one.progress.submit_started_at is None and one.progress.next_attempt_at == NOW + timedelta(seconds=1)
    assert one.intent.status is Status.PENDING and one.events == []


def test_what_may_have_been_sent_stays_so_when_the_next_try_was_not():
    token, sent = uuid4(), NOW - timedelta(seconds=3)
    one = begun(submit_started_at=NOW)
    one.progress.lease_token = token

    settle(one, [DispatchResult(leased(token, started_before=sent), RetryLater(1.0, "connection_refused"))])

    assert one.progress.submit_started_at == sent


def test_a_cancel_that_came_while_its_command_was_turned_back_is_tried_at_once():
    token = uuid4()
    one = begun(Status.PENDING_CANCEL, Command(CREATE, 1, "CREATE", spec()), submit_started_at=NOW)
    one.progress.lease_token = token

    settle(one, [DispatchResult(leased(token, status=Status.PENDING), RetryLater(600.0, "circuit_open"))])

    assert one.progress.next_attempt_at == NOW


def test_only_what_the_broker_took_in_counts_against_a_cancel():
    token = uuid4()
    one = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)

    def answered(verdict: Any, started_before: datetime | None) -> int:
        one.progress.lease_token = token
        task = leased(
            token, action_id=CHANGE, type="CANCEL", started_before=started_before, attempts=one.progress.attempts
        )
        settle(one, [DispatchResult(task, verdict)])
        return one.progress.attempts

    taken_in = OrderFound(order(OrderStatus.WORKING))
    for _ in range(8):
        answered(RetryLater(1.0, "connection_refused"), None)
    assert answered(taken_in, None) == 1, "an outage before it was sent"
    assert answered(taken_in, NOW) == 2
    for _ in range(8):
        answered(Unknown("timeout"), NOW)
        answered(RetryLater(1.0, "circuit_open"), NOW)
    assert answered(taken_in, NOW) == 1, "an outage since"
    assert one.intent.status is Status.PENDING_CANCEL


def positions_of(one: Settlement) -> list[str]:
    return [event["payload"]["quantity"] for event in one.events if event["type"] == "BROKER_POSITION"]


def standing(number: int, quantity: int, position: int) -> Execution:
    return replace(execution(number, quantity), position_quantity=Decimal(position))


def test_a_fill_that_was_in_the_answer_already_still_brings_its_position():
    token, one = uuid4(), begun()
    one.progress.lease_token = token
    settle(one, [DispatchResult(leased(token), OrderFound(order(OrderStatus.FILLED, 10)))])
    assert [(move["moved"], move["stands"]) for move in one.position_changes] == [(10, None)] and positions_of(
        one
    ) == []

    for _ in range(2):
        settle(one, [reported(order(OrderStatus.FILLED, 10), standing(1, 10, position=25))])

    assert positions_of(one) == ["25"] and one.position_changes[-1]["stands"] == 25
    assert one.intent.filled_quantity == traded(one) == 10


def test_a_position_reported_late_does_not_replace_a_later_one():
    one = begun(Status.ACCEPTED)

    settle(
        one,
        [
            reported(order(OrderStatus.FILLED, 10), standing(2, 4, position=10)),
            reported(order(OrderStatus.WORKING, 6), standing(1, 6, position=6)),
        ],
    )

    assert positions_of(one) == ["10"] and one.position_changes[-1]["stands"] == 10


def test_a_fill_of_what_was_thought_unsent_is_kept():
    token, one = uuid4(), begun(Status.SUBMITTED)
    one.progress.lease_token = token
    denied = Decided(Update.DENIED, "TRADING_HALTED", "halted")
    settle(one, [DispatchResult(leased(token, started_before=NOW - timedelta(minutes=1)), denied)])
    assert one.intent.status is Status.DENIED and one.progress.open_actions == 0 and one.unsent_orders == []

    settle(one, [reported(order(OrderStatus.WORKING, 4), execution(1, 4))])

    assert one.intent.status is Status.DENIED and one.intent.filled_quantity == 4 == traded(one)


def replacing(quantity: str = "15") -> Settlement:
    one = begun(Status.PENDING_REPLACE, Command(CHANGE, 2, "REPLACE", spec(quantity)), done_sequence=1)
    one.orders[SECOND] = BrokerOrder(SECOND, 2, None, "STARTED", set(), *[Decimal(0)] * 3)
    return one


@pytest.mark.parametrize(("filled", "code"), [(8, None), (9, "OVERFILLED")])
def test_a_replacement_to_less_than_is_filled_fills_the_intent(filled, code):
    one = replacing("8")
    settle(one, [reported(order(OrderStatus.WORKING, filled), execution(1, filled))])

    settle(one, [reported(replace(order(OrderStatus.WORKING, name=SECOND, number="b2"), quantity=Decimal(1)))])

    assert one.intent.status is Status.FILLED and one.intent.reason_code == code
    assert one.progress.open_actions == 0 and one.orders[SECOND].unwanted, "what the broker holds open is canceled"


def test_a_replacement_is_done_when_its_order_is_shown():
    one = replacing()

    settle(one, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2", replaces="b1"))])

    assert one.intent.status is Status.ACCEPTED and one.intent.quantity == 15 and one.intent.broker_order_id == "b2"
    assert one.progress.open_actions == 0 and one.progress.done_sequence == 2


def test_what_has_replaced_an_order_is_queried_at_once_before_it_is_taken_for_the_replacement():
    """The broker's id alone does not tell whose it is."""
    one, later = replacing(), NOW + timedelta(minutes=1)
    one.progress.next_attempt_at = later

    settle(one, [reported(order(OrderStatus.REPLACED, replaced_by="b2"))])
    assert one.intent.status is Status.PENDING_REPLACE and one.progress.next_attempt_at == NOW

    settle(one, [reported(order(OrderStatus.PENDING, name=SECOND, number="b2", replaces="b1"))])
    assert one.intent.status is Status.ACCEPTED and one.intent.quantity == 15 and one.intent.broker_order_id == "b2"


def test_a_replacement_only_taken_in_is_not_done():
    one = replacing()

    settle(one, [reported(order(OrderStatus.PENDING, name=SECOND, number="b2", replaces="b1"))])

    assert one.intent.status is Status.PENDING_REPLACE and one.intent.broker_order_id == "b1"


def test_a_late_fill_of_a_replaced_order_counts_towards_the_intent():
    one = replacing()
    settle(one, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2", replaces="b1"))])

    settle(one, [reported(order(OrderStatus.REPLACED, 3), execution(1, 3))])

    assert one.intent.filled_quantity == 3 and one.intent.status is Status.PARTIALLY_FILLED
    assert one.intent.broker_order_id == "b2"


def test_a_cancel_refused_because_the_order_is_filled_ends_as_filled():
    token = uuid4()
    one = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)
    one.progress.lease_token = token
    verdict = Rejected("BROKER_REFUSED", "order is already filled", (order(OrderStatus.FILLED, 10),))

    settle(one, [DispatchResult(leased(token, action_id=CHANGE, type="CANCEL"), verdict)])

    assert one.intent.status is Status.FILLED and one.progress.open_actions == 0 and one.intent.reason_code is None


def test_an_order_replaced_by_somebody_else_is_no_longer_ours():
    one = begun(Status.ACCEPTED)

    settle(one, [reported(order(OrderStatus.REPLACED, replaced_by="b9"))])

    assert one.intent.status is Status.CANCELED and one.intent.reason_code == "REPLACED_ELSEWHERE"


def given_up(status: Status = Status.PENDING_CANCEL) -> Settlement:
    """Perhaps sent, not found at the broker, ended."""
    token, one = uuid4(), begun(Status.SUBMITTED)
    one.intent, one.progress.lease_token = replace(one.intent, status=status, outcome="unknown"), token
    gone = Decided(Update.CANCELED, "NOT_FOUND_AT_BROKER", "gone")
    settle(one, [DispatchResult(leased(token, started_before=NOW - timedelta(minutes=1)), gone)])
    assert one.intent.status is Status.CANCELED and one.orders[FIRST].status == "MISSING"
    return one


def notes(one: Settlement) -> list[tuple[str, str | None]]:
    """Broker order events by reason and order."""
    events = [event for event in one.events if event["type"] == "BROKER_ORDER"]
    return [(event["payload"]["reason_code"], event["payload"]["broker_order_id"]) for event in events]


@pytest.mark.parametrize("status", [OrderStatus.PENDING, OrderStatus.WORKING])
def test_an_order_that_surfaces_after_the_end_is_shown_once_and_to_be_canceled(status):
    one = given_up()

    for _ in range(2):
        settle(one, [reported(order(status, 4), execution(1, 4))])

    assert one.orders[FIRST].unwanted and one.intent.status is Status.CANCELED
    assert [event["payload"].get("reason") for event in one.events].count(SYSTEM_CANCELS) == 1
    assert one.intent.filled_quantity == 4 == traded(one)
    assert one.intent.reason_code == "ORDER_AFTER_END", "the broker has it after all"

    settle(one, [reported(order(OrderStatus.CANCELED, 4))])
    assert notes(one)[-1] == ("ORDER_AFTER_END", "b1"), "that it is gone is an event as well"
    assert one.events[-1]["payload"]["reason"] == "The order has ended as CANCELED."


def test_an_order_that_surfaces_ended_is_not_to_be_canceled():
    one = given_up()

    settle(one, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])

    assert not one.orders[FIRST].unwanted and one.intent.status is Status.FILLED
    assert one.intent.reason_code is None, "it was filled, whatever was believed before"


def test_an_order_that_surfaces_canceled_takes_back_that_it_was_not_found():
    one = given_up()

    settle(one, [reported(order(OrderStatus.CANCELED))])

    assert not one.orders[FIRST].unwanted and one.intent.status is Status.CANCELED
    assert one.intent.reason_code == "ORDER_AFTER_END" and notes(one)[-1] == ("ORDER_AFTER_END", "b1")


@pytest.mark.parametrize("sent_before", [True, False])
def test_a_refusal_is_of_its_own_request_and_not_of_one_sent_before(sent_before):
    """The first request may still be on its way when the second one is refused."""
    token, one = uuid4(), begun(Status.SUBMITTED)
    one.progress.lease_token = token
    started = NOW - timedelta(minutes=1) if sent_before else None
    settle(one, [DispatchResult(leased(token, started_before=started), Rejected("INSUFFICIENT_BUYING_POWER", "no"))])
    assert one.intent.status is Status.REJECTED

    settle(one, [reported(order(OrderStatus.WORKING))])

    assert one.orders[FIRST].unwanted == sent_before
    assert ("ORDER_AFTER_END" in [code for code, _ in notes(one)]) == sent_before


def test_an_order_that_can_be_queried_again_needs_no_operator():
    one = begun(Status.ACCEPTED)
    settle(one, [OutOfReach(ACCOUNT, FIRST)])

    settle(one, [BrokerReport(ACCOUNT, order(OrderStatus.WORKING), NOW, is_current_state=True)])

    assert one.intent.status is Status.ACCEPTED and one.intent.reason_code is None and len(one.events) == 2


def test_a_cancel_that_had_to_wait_was_not_taken_in():
    token = uuid4()
    one = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)

    for _ in range(8):
        one.progress.lease_token = token
        settle(one, [DispatchResult(leased(token, action_id=CHANGE, type="CANCEL"), RetryLater(1.0, "circuit_open"))])

    assert one.progress.attempts == 0


def test_a_late_word_of_an_ended_order_does_not_make_it_unwanted():
    one = begun(Status.ACCEPTED)

    settle(one, [reported(order(OrderStatus.CANCELED)), reported(order(OrderStatus.WORKING))])

    assert not one.orders[FIRST].unwanted and notes(one) == [(None, "b1")]


def test_a_second_order_under_one_client_order_id_is_shown_canceled_and_its_fills_count():
    one = begun(Status.ACCEPTED)
    settle(one, [reported(order(OrderStatus.WORKING, 6), execution(1, 6))])

    settle(one, [reported(order(OrderStatus.WORKING, 3, number="b9"), execution(2, 3))])

    second = one.orders[f"{FIRST}#b9"]
    assert second.unwanted and second.filled_quantity == 3 and not one.orders[FIRST].unwanted
    assert ("DUPLICATE_ORDER", "b9") in notes(one)
    assert one.intent.filled_quantity == 9 == traded(one) and one.intent.broker_order_id == "b1"


def test_the_same_execution_id_on_two_orders_is_two_executions():
    one = begun(Status.ACCEPTED)

    settle(one, [reported(order(OrderStatus.WORKING, 3), execution(1, 3))])
    settle(one, [reported(order(OrderStatus.WORKING, 3, number="b9"), execution(1, 3))])

    assert one.intent.filled_quantity == 6 == traded(one)


def test_a_replacement_rejected_after_it_was_accepted_ends_the_intent_with_its_fills():
    """The exchange refuses what the broker had taken: nothing is open any more."""
    one = replacing()
    settle(one, [reported(order(OrderStatus.REPLACED, 4), execution(1, 4))])
    settle(one, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2"))])
    assert one.intent.status is Status.PARTIALLY_FILLED

    settle(one, [reported(order(OrderStatus.REJECTED, name=SECOND, number="b2"))])

    assert one.intent.status is Status.REJECTED and one.intent.filled_quantity == 4
    assert one.intent.reason_code == "BROKER_REJECTED"


def test_what_is_filled_beyond_the_request_says_so():
    one = begun(Status.ACCEPTED)

    settle(one, [reported(order(OrderStatus.FILLED, 12), execution(1, 12))])

    assert one.intent.status is Status.FILLED and one.intent.reason_code == "OVERFILLED"


def test_an_order_that_stays_open_after_its_intent_is_filled_is_to_be_canceled():
    """Fills of a replaced order came late: the new one asks for more than is left."""
    one = replacing()
    settle(one, [reported(replace(order(OrderStatus.WORKING, name=SECOND, number="b2"), quantity=Decimal(12)))])
    settle(one, [reported(order(OrderStatus.REPLACED, 5), execution(1, 5))])
    assert one.is_overordered, "12 are open and 10 are left of 15"

    settle(one, [reported(replace(order(OrderStatus.WORKING, 10, name=SECOND, number="b2"), quantity=Decimal(12)))])

    assert one.intent.status is Status.FILLED and one.orders[SECOND].unwanted
    assert ("ORDER_AFTER_END", "b2") in notes(one)


@pytest.mark.parametrize("number", ["b1", "b9"], ids=["replaced", "duplicate"])
def test_an_order_for_which_the_fills_of_another_leave_nothing_is_to_be_canceled(number):
    """The old order, or a second one under its id, has filled everything; that is seen when the new one is open."""
    one = replacing()
    settle(one, [reported(replace(order(OrderStatus.WORKING, name=SECOND, number="b2"), quantity=Decimal(15)))])
    assert one.intent.quantity == 15 and not one.is_overordered

    settle(one, [reported(order(OrderStatus.REPLACED, 15, number=number), execution(1, 15))])

    assert one.intent.status is Status.FILLED and one.intent.filled_quantity == 15
    assert one.orders[SECOND].unwanted and notes(one)[-1] == ("ORDER_AFTER_END", "b2")


THIRD_ACTION = uuid4()
THIRD = client_order_id(THIRD_ACTION)


def replacing_again() -> Settlement:
    """One REPLACE was given up and may still arrive; the next one is being sent."""
    one = begun(Status.PENDING_REPLACE, Command(THIRD_ACTION, 3, "REPLACE", spec("30")), done_sequence=2)
    one.orders[SECOND] = BrokerOrder(SECOND, 2, None, "MISSING", set(), *[Decimal(0)] * 3)
    one.orders[THIRD] = BrokerOrder(THIRD, 3, None, "STARTED", set(), *[Decimal(0)] * 3)
    return one


def refused_again(one: Settlement, *shown: Order) -> None:
    one.progress.lease_token = uuid4()
    given = leased(one.progress.lease_token, action_id=THIRD_ACTION, type="REPLACE")
    settle(one, [DispatchResult(given, Rejected("BROKER_REFUSED", "cannot replace it", shown))])


@pytest.mark.parametrize("reported_before", [True, False])
def test_what_a_late_replacement_has_made_of_an_order_is_not_taken_for_the_next_one(reported_before):
    one, replaced = replacing_again(), order(OrderStatus.REPLACED, replaced_by="b2")
    if reported_before:
        settle(one, [reported(replaced)])
        assert one.intent.status is Status.PENDING_REPLACE, "which of the two it was is not known yet"
    refused_again(one, *([] if reported_before else [replaced]))

    assert one.intent.status is Status.CANCELED and one.intent.reason_code == "REPLACED_LATE"
    assert one.intent.quantity == 10 and one.progress.open_actions == 0
    settle(one, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2"))])
    assert one.orders[SECOND].unwanted and one.orders[THIRD].broker_order_id is None


def test_a_replacement_is_done_although_an_earlier_one_was_given_up():
    one = replacing_again()
    settle(one, [reported(order(OrderStatus.REPLACED, replaced_by="b3"))])

    settle(one, [reported(order(OrderStatus.PENDING, name=THIRD, number="b3", replaces="b1"))])

    assert one.intent.status is Status.ACCEPTED and one.intent.quantity == 30 and one.intent.broker_order_id == "b3"
    assert not any(known.unwanted for known in one.orders.values())


def test_an_order_replaced_by_somebody_else_is_not_taken_for_a_replacement_that_was_refused():
    token, one = uuid4(), replacing()
    one.progress.lease_token = token
    gone = order(OrderStatus.REPLACED, replaced_by="theirs")

    settle(
        one,
        [DispatchResult(leased(token, action_id=CHANGE, type="REPLACE"), Rejected("ORDER_NOT_OPEN", "no", (gone,)))],
    )

    assert one.intent.status is Status.CANCELED and one.intent.reason_code == "REPLACED_ELSEWHERE"
    assert one.intent.quantity == 10 and one.orders[SECOND].broker_order_id is None


def test_the_answer_to_a_replacement_brings_the_last_fills_of_the_old_order():
    token, one = uuid4(), replacing()
    one.progress.lease_token = token
    old = order(OrderStatus.REPLACED, 4, replaced_by="b2")
    new = replace(order(OrderStatus.PENDING, name=SECOND, number="b2", replaces="b1"), quantity=Decimal(11))

    settle(one, [DispatchResult(leased(token, action_id=CHANGE, type="REPLACE"), OrderFound(new, (old,)))])

    assert one.intent.filled_quantity == 4 == traded(one) and one.intent.broker_order_id == "b2"
    assert one.progress.open_actions == 0 and not one.is_overordered


def test_a_replacement_in_flight_when_its_intent_ends_may_still_surface():
    one = replacing()
    settle(one, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    assert one.intent.status is Status.FILLED and one.orders[SECOND].status == "MISSING"

    settle(one, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2"))])

    assert one.orders[SECOND].unwanted and ("ORDER_AFTER_END", "b2") in notes(one)


def test_only_answers_of_a_broker_that_could_be_queried_count_towards_giving_up():
    token, sent = uuid4(), NOW - timedelta(minutes=5)
    one = begun(Status.SUBMITTED, submit_started_at=sent)

    def answered(verdict: Any) -> int:
        one.progress.lease_token = token
        settle(one, [DispatchResult(leased(token, started_before=sent), verdict)])
        return one.progress.absences

    absent = RetryLater(5.0, "perhaps_sent", absent=True)
    assert [answered(absent), answered(absent)] == [1, 2]
    assert answered(Unknown("timeout")) == 0
    assert [answered(absent), answered(RetryLater(1.0, "connection_refused")), answered(absent)] == [1, 0, 1]


def test_what_an_operator_has_found_not_to_be_there_has_failed_and_may_surface():
    one = begun(Status.SUBMITTED)

    settle(one, [Resolution(ACCOUNT, INTENT, FIRST, "not in the broker's list of the day")])

    assert one.intent.status is Status.FAILED and one.intent.reason_code == "RESOLVED_BY_OPERATOR"
    assert one.progress.open_actions == 0 and one.orders[FIRST].status == "MISSING"
    settle(one, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    assert one.intent.status is Status.FILLED and one.intent.filled_quantity == 10


@pytest.mark.parametrize(
    ("story", "reason_code"),
    [
        ([Update.REPLACE_REJECTED, Update.CANCELED], None),
        ([Update.REPLACE_REJECTED, Update.FILLED], None),
        ([Update.REPLACE_REJECTED], "REPLACE_NOT_SENT"),
    ],
)
def test_a_reason_is_the_reason_of_the_last_thing_that_happened(story, reason_code):
    one = begun(Status.PENDING_CANCEL)
    for update in story:
        code = "REPLACE_NOT_SENT" if update is Update.REPLACE_REJECTED else None
        apply_report(one, Report(update, NOW, reason_code=code))

    assert one.intent.reason_code == reason_code


def test_a_reason_to_wait_is_shown_once_and_forgotten_when_it_is_over():
    token = uuid4()
    one = begun()
    for _ in range(2):
        one.progress.lease_token = token
        settle(one, [DispatchResult(leased(token), RetryLater(5.0, "refused", "CREDENTIAL_INVALID"))])
    assert one.intent.status is Status.PENDING and one.intent.reason_code == "CREDENTIAL_INVALID"
    assert len(one.events) == 1

    settle(one, [reported(replace(order(OrderStatus.WORKING)))])

    assert one.intent.status is Status.ACCEPTED and one.intent.reason_code is None


def test_a_reason_to_wait_is_no_reason_for_the_end():
    token = uuid4()
    one = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)
    one.progress.lease_token = token
    settle(
        one,
        [
            DispatchResult(
                leased(token, action_id=CHANGE, type="CANCEL"), RetryLater(5.0, "refused", "CREDENTIAL_INVALID")
            )
        ],
    )
    assert one.intent.reason_code == "CREDENTIAL_INVALID"

    settle(one, [reported(order(OrderStatus.CANCELED))])

    assert one.intent.status is Status.CANCELED and one.intent.reason_code is None


@given(stories())
@settings(max_examples=100, deadline=None)
def test_settling_leaves_the_locked_intent_as_it_was(story):
    inputs, _total = story
    before = locked(Status.ACCEPTED)

    settlement = settling.settle(before, enumerate(inputs))

    assert settlement.is_changed and before == locked(Status.ACCEPTED)


@given(stories())
@settings(max_examples=100, deadline=None)
def test_an_input_that_changes_nothing_writes_nothing(story):
    """Whatever has been recorded of an intent may come again."""
    inputs, _total = story
    first = settling.settle(locked(), enumerate(inputs))
    recorded = replace(
        first.locked, intent=first.intent, orders=first.orders, command=first.command, progress=first.progress
    )

    again = settling.settle(recorded, enumerate(inputs))

    assert not again.is_changed and not again.events and not again.position_changes


def test_an_order_that_was_not_sent_is_deleted_unless_the_broker_shows_it():
    token = uuid4()
    one = begun(lease_token=token)
    settle(one, [DispatchResult(leased(token), Decided(Update.DENIED, "TRADING_HALTED", "halted"))])
    assert one.deleted_orders == [FIRST] and one.changed_orders == []

    settle(one, [reported(order(OrderStatus.WORKING))])

    assert one.deleted_orders == [] and [known.key for known in one.changed_orders] == [FIRST]
