"""What comes of a dispatch under its lease: settled, queried again, waited for; settling changes nothing else."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings

from intents.brokers import OrderStatus
from intents.execution.model import settling
from intents.execution.model.inputs import BrokerReport, DispatchResult, OutOfReach, Resolution
from intents.execution.model.locked_intent import Command
from intents.execution.model.settlement import apply_report
from intents.execution.model.verdicts import Decided, OrderFound, Rejected, RetryLater, Unknown
from intents.model import Status, Update
from intents.model.reports import Report

from .settlements import (
    ACCOUNT,
    CHANGE,
    CREATE,
    FIRST,
    INTENT,
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


def test_an_order_that_no_credential_can_query_says_so_once():
    one = begun(Status.ACCEPTED)

    for _ in range(2):
        settle(one, [OutOfReach(ACCOUNT, FIRST)])

    assert one.intent.status is Status.ACCEPTED and one.intent.reason_code == "OPERATOR_REQUIRED"
    assert len(one.events) == 1
    settle(one, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    assert one.intent.status is Status.FILLED and one.intent.reason_code is None


def test_an_update_that_overtakes_the_answer_settles_the_command_and_the_answer_changes_nothing():
    one, token = begun(), uuid4()
    one.progress.lease_token = token
    settle(one, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    before = len(one.events)

    settle(one, [DispatchResult(leased(token), OrderFound(order(OrderStatus.PENDING)))])

    assert one.intent.status is Status.FILLED and one.progress.open_actions == 0
    assert len(one.events) == before and one.progress.lease_token is None


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


def test_a_cancel_refused_because_the_order_is_filled_ends_as_filled():
    token = uuid4()
    one = begun(Status.PENDING_CANCEL, Command(CHANGE, 2, "CANCEL", None), done_sequence=1)
    one.progress.lease_token = token
    verdict = Rejected("BROKER_REFUSED", "order is already filled", (order(OrderStatus.FILLED, 10),))

    settle(one, [DispatchResult(leased(token, action_id=CHANGE, type="CANCEL"), verdict)])

    assert one.intent.status is Status.FILLED and one.progress.open_actions == 0 and one.intent.reason_code is None


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
