"""What comes of a dispatch under its lease: settled, queried again, waited for; settling changes nothing else."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings

from intents.execution.model import settling
from intents.execution.model.inputs import DispatchResult
from intents.execution.model.locked_intent import Command
from intents.execution.model.settlement import apply_report
from intents.execution.model.verdicts import Decided, OrderFound, Rejected, RetryLater, Unknown
from intents.model import Status, Update
from intents.model.reports import Report
from tip_brokers import OrderStatus

from .settlements import (
    CHANGE,
    CREATE,
    FIRST,
    NOW,
    begun,
    execution,
    leased,
    locked,
    order,
    reported,
    settle,
    spec,
    stories,
)


def test_an_update_that_overtakes_the_answer_settles_the_command_and_the_answer_changes_nothing():
    settlement, token = begun(), uuid4()
    settlement.progress.lease_token = token
    settle(settlement, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    before = len(settlement.events)

    settle(settlement, [DispatchResult(leased(token), OrderFound(order(OrderStatus.PENDING)))])

    assert settlement.intent.status is Status.FILLED and settlement.progress.open_actions == 0
    assert len(settlement.events) == before and settlement.progress.lease_token is None


def test_an_answer_that_comes_after_the_update_does_not_take_the_order_back_from_the_market():
    settlement, token = begun(), uuid4()
    settlement.progress.lease_token = token
    settle(settlement, [reported(order(OrderStatus.WORKING))])

    settle(settlement, [DispatchResult(leased(token), OrderFound(order(OrderStatus.PENDING)))])

    assert settlement.orders[FIRST].status == OrderStatus.WORKING


def test_under_a_lost_lease_what_was_seen_counts_and_what_was_decided_does_not():
    other = uuid4()
    settlement = begun(lease_token=other)

    for verdict in (Decided(Update.DENIED, "TRADING_HALTED", "halted"), Unknown("timeout"), RetryLater(9.0, "later")):
        settle(settlement, [DispatchResult(leased(uuid4()), verdict)])
    assert settlement.intent.status is Status.PENDING and not settlement.is_changed

    settle(settlement, [DispatchResult(leased(uuid4()), OrderFound(order(OrderStatus.WORKING)))])

    assert settlement.intent.status is Status.ACCEPTED and settlement.progress.lease_token == other


def test_an_unknown_outcome_is_shown_once_and_queried_after_five_seconds_then_every_two():
    token = uuid4()
    settlement = begun(submit_started_at=NOW)
    settlement.progress.lease_token = token
    settle(settlement, [DispatchResult(leased(token), Unknown("timeout"))])
    assert settlement.intent.status is Status.SUBMITTED and settlement.intent.outcome == "unknown"
    assert settlement.progress.next_attempt_at == NOW + timedelta(seconds=5)

    settlement.progress.lease_token, settlement.locked = (
        token,
        replace(settlement.locked, now=NOW + timedelta(seconds=5)),
    )
    settle(settlement, [DispatchResult(leased(token, started_before=NOW), Unknown("timeout"))])

    assert settlement.progress.next_attempt_at == NOW + timedelta(seconds=7)
    assert len(settlement.events) == 1


def test_what_was_certainly_not_sent_is_as_if_it_had_never_been_tried():
    token = uuid4()
    settlement = begun(submit_started_at=NOW)
    settlement.progress.lease_token = token

    settle(settlement, [DispatchResult(leased(token), RetryLater(1.0, "rate_limited"))])

    assert settlement.progress.submit_started_at is None and settlement.progress.next_attempt_at == NOW + timedelta(
        seconds=1
    )
    assert settlement.intent.status is Status.PENDING and settlement.events == []


def test_what_may_have_been_sent_stays_so_when_the_next_try_was_not():
    token, sent = uuid4(), NOW - timedelta(seconds=3)
    settlement = begun(submit_started_at=NOW)
    settlement.progress.lease_token = token

    settle(settlement, [DispatchResult(leased(token, started_before=sent), RetryLater(1.0, "connection_refused"))])

    assert settlement.progress.submit_started_at == sent


def test_a_cancel_that_came_while_its_command_was_turned_back_is_tried_at_once():
    token = uuid4()
    settlement = begun(Status.PENDING_CANCEL, Command(CREATE, 1, "CREATE", spec()), submit_started_at=NOW)
    settlement.progress.lease_token = token

    settle(settlement, [DispatchResult(leased(token, status=Status.PENDING), RetryLater(600.0, "circuit_open"))])

    assert settlement.progress.next_attempt_at == NOW


def test_only_what_the_broker_took_in_counts_against_a_cancel():
    token = uuid4()
    settlement = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)

    def answered(verdict: Any, started_before: datetime | None) -> int:
        settlement.progress.lease_token = token
        task = leased(
            token, action_id=CHANGE, type="CANCEL", started_before=started_before, attempts=settlement.progress.attempts
        )
        settle(settlement, [DispatchResult(task, verdict)])
        return settlement.progress.attempts

    taken_in = OrderFound(order(OrderStatus.WORKING))
    for _ in range(8):
        answered(RetryLater(1.0, "connection_refused"), None)
    assert answered(taken_in, None) == 1, "an outage before it was sent"
    assert answered(taken_in, NOW) == 2
    for _ in range(8):
        answered(Unknown("timeout"), NOW)
        answered(RetryLater(1.0, "circuit_open"), NOW)
    assert answered(taken_in, NOW) == 1, "an outage since"
    assert settlement.intent.status is Status.PENDING_CANCEL


def test_a_cancel_refused_because_the_order_is_filled_ends_as_filled():
    token = uuid4()
    settlement = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)
    settlement.progress.lease_token = token
    verdict = Rejected("BROKER_REFUSED", "order is already filled", (order(OrderStatus.FILLED, 10),))

    settle(settlement, [DispatchResult(leased(token, action_id=CHANGE, type="CANCEL"), verdict)])

    assert (
        settlement.intent.status is Status.FILLED
        and settlement.progress.open_actions == 0
        and settlement.intent.reason_code is None
    )


def test_a_canceled_order_that_the_broker_shows_without_our_id_ends_its_intent():
    token = uuid4()
    settlement = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)
    settlement.progress.lease_token = token
    verdict = OrderFound(order(OrderStatus.CANCELED, 4, name="b1", number="b1"))

    settle(settlement, [DispatchResult(leased(token, action_id=CHANGE, type="CANCEL"), verdict)])

    assert (settlement.intent.status, settlement.intent.filled_quantity) == (Status.CANCELED, 4)


def test_a_cancel_that_had_to_wait_was_not_taken_in():
    token = uuid4()
    settlement = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)

    for _ in range(8):
        settlement.progress.lease_token = token
        settle(
            settlement,
            [DispatchResult(leased(token, action_id=CHANGE, type="CANCEL"), RetryLater(1.0, "circuit_open"))],
        )

    assert settlement.progress.attempts == 0


def test_only_answers_of_a_broker_that_could_be_queried_count_towards_giving_up():
    token, sent = uuid4(), NOW - timedelta(minutes=5)
    settlement = begun(Status.SUBMITTED, submit_started_at=sent)

    def answered(verdict: Any) -> int:
        settlement.progress.lease_token = token
        settle(settlement, [DispatchResult(leased(token, started_before=sent), verdict)])
        return settlement.progress.absences

    absent = RetryLater(5.0, "perhaps_sent", absent=True)
    assert [answered(absent), answered(absent)] == [1, 2]
    assert answered(Unknown("timeout")) == 0
    assert [answered(absent), answered(RetryLater(1.0, "connection_refused")), answered(absent)] == [1, 0, 1]


@pytest.mark.parametrize(
    ("story", "reason_code"),
    [
        ([Update.REPLACE_REJECTED, Update.CANCELED], None),
        ([Update.REPLACE_REJECTED, Update.FILLED], None),
        ([Update.REPLACE_REJECTED], "REPLACE_NOT_SENT"),
    ],
)
def test_a_reason_is_the_reason_of_the_last_thing_that_happened(story, reason_code):
    settlement = begun(Status.PENDING_CANCEL)
    for update in story:
        code = "REPLACE_NOT_SENT" if update is Update.REPLACE_REJECTED else None
        apply_report(settlement, Report(update, NOW, reason_code=code))

    assert settlement.intent.reason_code == reason_code


def test_a_reason_to_wait_is_shown_once_and_forgotten_when_it_is_over():
    token = uuid4()
    settlement = begun()
    for _ in range(2):
        settlement.progress.lease_token = token
        settle(settlement, [DispatchResult(leased(token), RetryLater(5.0, "refused", "CREDENTIAL_INVALID"))])
    assert settlement.intent.status is Status.PENDING and settlement.intent.reason_code == "CREDENTIAL_INVALID"
    assert len(settlement.events) == 1

    settle(settlement, [reported(replace(order(OrderStatus.WORKING)))])

    assert settlement.intent.status is Status.ACCEPTED and settlement.intent.reason_code is None


def test_a_reason_to_wait_is_no_reason_for_the_end():
    token = uuid4()
    settlement = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)
    settlement.progress.lease_token = token
    settle(
        settlement,
        [
            DispatchResult(
                leased(token, action_id=CHANGE, type="CANCEL"), RetryLater(5.0, "refused", "CREDENTIAL_INVALID")
            )
        ],
    )
    assert settlement.intent.reason_code == "CREDENTIAL_INVALID"

    settle(settlement, [reported(order(OrderStatus.CANCELED))])

    assert settlement.intent.status is Status.CANCELED and settlement.intent.reason_code is None


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
    settlement = begun(lease_token=token)
    settle(settlement, [DispatchResult(leased(token), Decided(Update.DENIED, "TRADING_HALTED", "halted"))])
    assert settlement.deleted_orders == [FIRST] and settlement.changed_orders == []

    settle(settlement, [reported(order(OrderStatus.WORKING))])

    assert settlement.deleted_orders == [] and [known.key for known in settlement.changed_orders] == [FIRST]
