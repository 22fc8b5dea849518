"""How often an account is compared with its broker: rarely while its stream reports everything, at once in doubt."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import pytest

from intents.execution.model.known_orders import KnownOpenOrder, WatchedAccount
from intents.execution.watches import MOST_TRUST, Watch

EVERY = 5.0
ACCOUNT = WatchedAccount(uuid4(), uuid4(), "paper", "paper", is_urgent=False, is_restored=False)


def an_order(client_order_id: str) -> KnownOpenOrder:
    return KnownOpenOrder(client_order_id, "b1", "WORKING", Decimal(0), datetime.now(UTC))


@pytest.fixture
def watch() -> Watch:
    return Watch(ACCOUNT)


def compare(watch: Watch, now: float, *differing: str) -> float:
    """A comparison of that moment that finds these orders changed; seconds until the next."""
    watch.begin_comparison(now, EVERY)
    watch.end_comparison(EVERY, differing)
    return watch.due_at - now


def test_without_a_stream_an_account_is_compared_as_often_as_ever(watch: Watch) -> None:
    assert [compare(watch, 1000.0) for _ in range(4)] == [EVERY] * 4


def test_each_agreement_with_the_stream_makes_the_next_comparison_rarer_up_to_a_limit(watch: Watch) -> None:
    watch.begin_listening()

    assert [compare(watch, 1000.0) / EVERY for _ in range(6)] == [2, 4, 8, MOST_TRUST, MOST_TRUST, MOST_TRUST]


def test_what_the_stream_has_not_reported_ends_all_trust(watch: Watch) -> None:
    watch.begin_listening()
    for _ in range(4):
        compare(watch, 1000.0)

    assert compare(watch, 1000.0, "b1") == EVERY


def test_a_difference_that_the_stream_is_just_reporting_does_not_speak_against_it(watch: Watch) -> None:
    watch.begin_listening()
    watch.reported["b1"] = 999.5

    assert compare(watch, 1000.0, "b1") == 2 * EVERY


def test_what_the_stream_reports_of_other_orders_does_not_speak_for_it(watch: Watch) -> None:
    watch.begin_listening()
    watch.reported |= {"b1": 999.5, "b2": 900.0}

    assert compare(watch, 1000.0, "b1", "b2") == EVERY


def test_a_comparison_that_could_not_read_every_order_ends_all_trust_until_one_can(watch: Watch) -> None:
    unread, other = an_order("tip-1"), an_order("tip-2")
    watch.begin_listening()
    for _ in range(4):
        compare(watch, 1000.0)

    watch.queries.note_reading([unread], [unread])
    assert [compare(watch, 1000.0) for _ in range(2)] == [EVERY] * 2

    watch.queries.note_reading([other], [])
    assert compare(watch, 1000.0) == EVERY

    watch.queries.note_reading([unread], [])
    assert compare(watch, 1000.0) == 2 * EVERY


def test_an_order_that_has_ended_unread_ends_no_trust(watch: Watch) -> None:
    watch.begin_listening()
    watch.queries.note_reading([an_order("tip-1")], [an_order("tip-1")])

    watch.queries.forget_all_but([an_order("tip-2")])

    assert compare(watch, 1000.0) == 2 * EVERY


def test_for_an_order_that_is_lost_its_account_is_compared_no_more_often(watch: Watch) -> None:
    watch.queries.lost_seconds = 0.0
    watch.begin_listening()

    watch.queries.note_reading([an_order("tip-1")], [an_order("tip-1")])

    assert compare(watch, 1000.0) == 2 * EVERY


def test_a_comparison_that_fails_is_tried_again_as_soon_as_ever(watch: Watch) -> None:
    watch.begin_listening()
    for _ in range(4):
        compare(watch, 1000.0)

    watch.begin_comparison(2000.0, EVERY)

    assert watch.due_at == 2000.0 + EVERY


def test_what_became_due_during_a_comparison_stays_due(watch: Watch) -> None:
    watch.begin_listening()
    watch.begin_comparison(1000.0, EVERY)
    watch.due_at = 0.0
    watch.end_comparison(EVERY, ())

    assert watch.due_at == 0.0


@pytest.mark.parametrize("doubt", ["is_unconfirmed", "is_restored"])
def test_an_account_in_doubt_is_compared_as_often_as_ever(watch: Watch, doubt: str) -> None:
    watch.begin_listening()
    watch.account = ACCOUNT._replace(**{doubt: True})

    assert [compare(watch, 1000.0) for _ in range(4)] == [EVERY] * 4


def test_doubt_brings_the_next_comparison_forward(watch: Watch) -> None:
    watch.begin_listening()
    for _ in range(4):
        compare(watch, 1000.0)

    watch.follow(ACCOUNT._replace(is_unconfirmed=True), EVERY, is_due=False, now=1001.0)

    assert watch.due_at == 1000.0 + EVERY


def test_a_stream_that_is_lost_is_replaced_by_comparisons(watch: Watch) -> None:
    watch.begin_listening()
    for _ in range(4):
        compare(watch, 1000.0)

    watch.end_listening(1001.0)

    assert watch.due_at == 1001.0
    assert compare(watch, 1001.0) == EVERY


def test_a_lost_stream_does_not_shorten_the_pause_that_a_broker_wishes(watch: Watch) -> None:
    watch.begin_listening()
    watch.due_at = watch.paused_until = 1600.0

    watch.end_listening(1001.0)

    assert watch.due_at == 1600.0


def test_an_order_of_an_account_that_is_listened_to_makes_no_comparison_due(watch: Watch) -> None:
    watch.begin_listening()
    watch.account, watch.due_at = ACCOUNT._replace(is_open=False), 1060.0

    watch.follow(ACCOUNT, EVERY, is_due=False, now=1001.0)

    assert watch.due_at == 1060.0


def test_an_account_that_was_only_read_is_compared_again_when_it_has_an_order(watch: Watch) -> None:
    watch.begin_listening()
    watch.account, watch.due_at = ACCOUNT._replace(is_open=False), math.inf

    watch.follow(ACCOUNT, EVERY, is_due=False, now=1001.0)

    assert watch.due_at == 1001.0 + EVERY


def test_an_account_that_is_only_read_is_not_compared_again(watch: Watch) -> None:
    watch.account, watch.active_at = ACCOUNT._replace(is_open=False), -math.inf

    assert compare(watch, 1000.0) == math.inf
