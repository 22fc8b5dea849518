"""Exits of an order group that fill at once: reported, and flattened once if the account says so."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from intents.execution.order_groups import tend_order_groups
from tip_testing.identity_fixtures import Organization

from .conftest import Desk
from .grouping import Broker, filled_bracket, switch


@pytest.fixture
def desk(new_desk: Callable[..., Desk], organization: Organization) -> Desk:
    """At a broker that does not reserve a position for the first order that closes it."""
    return new_desk(organization=organization, broker="fix")


def test_exits_that_fill_at_once_are_reported(desk: Desk) -> None:
    broker = filled_bracket(desk)

    broker.fill_at_once({"take_profit": "10", "stop_loss": "10"})

    [group] = desk.rows("intent_group")
    assert group["excess_quantity"] == 10
    events = [row["payload"] for row in desk.rows("account_event")]
    [noted] = [event for event in events if event.get("reason_code") == "GROUP_OVERFILLED"]
    assert "10 more" in noted["reason"]


def flattening(desk: Desk) -> Broker:
    """A group whose exits have both filled, on an account that has that flattened."""
    desk.execute("UPDATE accounts.account SET flatten_excess = true WHERE id = :account_id")
    broker = filled_bracket(desk)
    broker.fill_at_once({"take_profit": "10", "stop_loss": "10"})
    return broker


def test_an_excess_is_flattened_once_if_the_account_says_so(desk: Desk) -> None:
    broker = flattening(desk)

    tend_order_groups(desk.deps)
    tend_order_groups(desk.deps)

    flatten = broker.legs()["flatten"]
    assert (flatten["order_side"], flatten["quantity"]) == ("BUY", 10)
    assert flatten["spec"] == {"Market": {"quantity": "10", "time_in_force": "DAY"}}
    broker.send()
    assert len(desk.rows("intent")) == 4 and broker.orders["flatten"].quantity == 10


def test_two_schedulers_flatten_once(desk: Desk) -> None:
    broker = flattening(desk)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: tend_order_groups(desk.deps), range(8)))

    assert len([row for row in desk.rows("intent") if row["group_role"] == "flatten"]) == 1
    assert broker.statuses()["flatten"] == "PENDING"


def test_what_cannot_be_flattened_now_is_flattened_later(desk: Desk) -> None:
    broker = flattening(desk)
    switch(desk, "HALTED")

    tend_order_groups(desk.deps)
    assert "flatten" not in broker.legs()
    switch(desk, "ACTIVE")
    tend_order_groups(desk.deps)

    assert broker.statuses()["flatten"] == "PENDING"


def test_without_the_accounts_word_nothing_is_flattened_even_if_it_is_said_later(desk: Desk) -> None:
    broker = filled_bracket(desk)
    broker.fill_at_once({"take_profit": "10", "stop_loss": "10"})
    desk.execute("UPDATE accounts.account SET flatten_excess = true WHERE id = :account_id")

    tend_order_groups(desk.deps)

    assert "flatten" not in broker.legs()
