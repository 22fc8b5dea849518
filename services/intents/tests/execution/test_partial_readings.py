"""What cannot be read of today's account, or done there, hides nothing else of it, and is tried again."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4, uuid5

import pytest

from intents.execution.model.known_orders import RestoredEpoch
from intents.execution.reconciliation import MOST_BROKEN
from tip_brokers import (
    Order,
    OrderStatus,
    OutcomeUnknown,
    RateLimited,
    Refused,
    Unreachable,
)
from tip_brokers.protocol import BROKEN_ANSWER

from .conftest import give_credential
from .partial_reading import Account, Reading, sent_under
from .test_unread_orders import accepted, filled, held, read_and_save, record

BROKEN, REFUSED, FAILED = OutcomeUnknown(BROKEN_ANSWER), Refused("FORBIDDEN", "no"), OutcomeUnknown("http_500")


@pytest.fixture
def reads(desk: Any) -> Any:
    """Compares the desk's account, whose orders are in `good`, with what each key opens."""

    def made(**accounts: Account) -> Reading:
        give_credential(desk, "good", name="good")
        sent_under(desk, "good", "today")
        return Reading(desk, accounts)

    return made


def canceled(order: Order) -> Order:
    return replace(order, status=OrderStatus.CANCELED)


def test_an_accepted_order_that_its_broker_knows_no_more_is_lost_and_its_fill_counts_once(desk, reads):
    [made] = accepted(desk)
    reading = reads(good=Account("today", b0=None))

    reading.compare()
    read_and_save(desk, Account("today", held={"ABC": 10}, b0=None))  # type: ignore[arg-type]
    record(desk, filled(made))

    assert reading.recorded.lost == [made.client_order_id] and held(desk) == [10]


@pytest.mark.parametrize("what", ["positions", "balance", "executions"])
@pytest.mark.parametrize("error", [BROKEN, REFUSED, FAILED], ids=["broken", "refused", "failed"])
def test_what_else_fails_hides_no_order_that_has_ended(desk, reads, what, error):
    first, second = accepted(desk, 2)
    good = Account("today", b0=filled(first), b1=canceled(second))
    good.raises[what] = error
    reading = reads(good=good)

    reading.compare()

    assert "b1" in reading.recorded.ends
    is_unlisted = what == "executions" and error is FAILED
    assert ("b0" in reading.recorded.ends) == (not is_unlisted)
    assert reading.recorded.lost == [first.client_order_id] * is_unlisted


def test_a_former_account_is_read_although_todays_fails(desk, reads):
    [made] = accepted(desk)
    give_credential(desk, "former", name="former")
    good, former = Account("today"), Account("former", b0=canceled(made))
    reading = reads(good=good, former=former)
    sent_under(desk, "former", "former")
    good.raises["open_orders"] = FAILED

    reading.compare()

    assert reading.recorded.ends == ["b0"]


def test_a_rate_limited_broker_is_not_asked_to_cancel_one_unwanted_order_after_the_other(desk, reads):
    made = accepted(desk, 5)
    desk.execute("UPDATE intents.broker_order SET unwanted_since = now() WHERE account_id = :account_id")
    good = Account("today", *made)
    good.raises["cancel"] = RateLimited("rate_limited", 600.0)
    reading = reads(good=good)

    reading.compare()

    assert good.calls["cancel"] == 1 and reading.watch.paused_until > time.monotonic() + 500


def test_a_new_credential_that_is_rate_limited_pauses_nothing_but_its_own_test(desk, reads):
    give_credential(desk, "next", status="pending", name="next")
    give_credential(desk, "last", status="pending", name="last")
    [made] = accepted(desk)
    nxt, last = Account("next"), Account("last")
    nxt.raises["account_id"] = RateLimited("rate_limited", 3600.0)
    reading = reads(good=Account("today", b0=canceled(made)), next=nxt, last=last)

    for _ in range(3):
        reading.compare()

    assert set(reading.recorded.ends) == {"b0"} and reading.watch.paused_until < time.monotonic() + 10
    assert nxt.calls["account_id"] == 1 and last.calls["account_id"] == 1


@pytest.mark.parametrize("what", ["without its secret", "without a part"])
def test_a_new_credential_that_nothing_can_be_opened_with_hides_nothing(desk, reads, what):
    [made] = accepted(desk)
    give_credential(desk, "next", status="pending", name="next", **({"token": "x"} if what == "without a part" else {}))
    if what == "without its secret":
        desk.execute("DELETE FROM accounts.vault_object WHERE credential_id = :id", id=uuid5(desk.account_id, "next"))
    reading = reads(good=Account("today", b0=canceled(made)))

    reading.compare()

    assert reading.recorded.ends == ["b0"]


def test_a_new_secret_of_an_older_credential_moves_no_account_to_what_it_opens(desk, reads):
    give_credential(desk, "old", name="old")
    reading = reads(
        good=Account("today", held={"ABC": 7}), new=Account("former", held={"ABC": 1}), old=Account("former")
    )
    reading.compare()
    give_credential(desk, "new", version=2, status="pending", name="old")

    for _ in range(2):
        reading.compare()

    assert [row["held_account"] for row in desk.rows("broker_account")] == ["today"] and held(desk) == [Decimal(7)]


def test_a_cancel_that_fails_keeps_no_other_unwanted_order_at_the_market(desk, reads):
    made = accepted(desk, 2 * MOST_BROKEN)
    desk.execute("UPDATE intents.broker_order SET unwanted_since = now() WHERE account_id = :account_id")

    class Stubborn(Account):
        def cancel(self, broker_order_id: str) -> None:
            canceled_there.append(broker_order_id)
            if broker_order_id < f"b{MOST_BROKEN}":
                raise FAILED

    canceled_there: list[str] = []
    reading = reads(good=Stubborn("today", *made, **{order.broker_order_id: canceled(order) for order in made}))

    for _ in range(3):
        reading.compare()

    assert set(canceled_there) == {order.broker_order_id for order in made}


def test_while_todays_account_cannot_be_read_no_order_of_it_is_lost(desk, reads):
    accepted(desk)
    good = Account("today", b0=BROKEN)
    reading = reads(good=good)
    reading.watch.queries.lost_seconds = 300.0
    reading.compare()
    reading.watch.queries.lost_seconds = 0.0
    good.raises["open_orders"] = Unreachable("ConnectionError")

    reading.compare()

    assert reading.recorded.lost == []


def test_while_the_accounts_own_credential_is_pending_no_order_of_it_is_lost(desk, reads):
    accepted(desk)
    reading = reads(good=Account("today"))
    give_credential(desk, "good", version=2, status="pending", name="good")
    desk.execute("DELETE FROM accounts.vault_object WHERE credential_id = :id", id=uuid5(desk.account_id, "good"))

    for _ in range(2):
        reading.compare()

    assert reading.recorded.put_ == []


def test_a_lost_order_that_needs_no_operator_any_more_is_lost_at_once(desk, reads):
    """A CANCEL that the broker did not know the order of shows its own reason."""
    [made] = accepted(desk)
    reading = reads(good=Account("today", b0=None))
    reading.compare()
    desk.execute("UPDATE intents.intent SET reason_code = 'OPERATOR_REQUIRED' WHERE account_id = :account_id")
    reading.compare()
    desk.execute("UPDATE intents.intent SET reason_code = '404' WHERE account_id = :account_id")
    reading.compare()

    assert reading.recorded.lost == [made.client_order_id] * 2


def test_a_test_that_fails_is_tried_again_the_less_often_and_the_rate_limit_of_a_later_failure_counts(desk, reads):
    give_credential(desk, "next", status="pending", name="next")
    nxt = Account("next")
    nxt.raises["account_id"] = FAILED
    good = Account("today")
    good.raises |= {"positions": REFUSED, "balance": REFUSED}
    reading = reads(good=good, next=nxt)

    for _ in range(3):
        reading.compare()
    assert nxt.calls["account_id"] == 1

    [made] = accepted(desk)
    good.others, good.raises["executions"] = {"b0": filled(made)}, RateLimited("rate_limited", 600.0)
    sent_under(desk, "good", "today")
    reading.compare()

    assert reading.watch.paused_until > time.monotonic() + 500


def test_a_restored_account_whose_balance_cannot_be_read_is_recorded_all_the_same(desk, reads):
    [made] = accepted(desk)
    good = Account("today", b0=canceled(made))
    good.raises["balance"] = REFUSED
    reading = reads(good=good)
    reading.watch.account = reading.watch.account._replace(is_restored=True)
    reading.reconciler._restored = RestoredEpoch(uuid4(), datetime.now(UTC))

    reading.compare()

    assert reading.recorded.ends == ["b0"]
