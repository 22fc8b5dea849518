"""What a claim reads to decide whether its commands may be sent: little, and for many commands at once."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from intents.execution import store
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.local_decisions import not_to_be_sent
from intents.store.statement import Statement
from tip_testing.commands import cancel, create

from ..broker_side import accept
from ..test_close_positions import close, hold, until_closing
from ..test_controls import limits

LEASE_SECONDS = 600.0


@pytest.fixture
def read(desk: Any) -> Iterator[list[str]]:
    """The names of the statements that the executor sends meanwhile."""
    connections, sent = desk.deps.connections, list[str]()
    execute = connections._execute

    def noted(statement: Statement, *arguments: Any, **named: Any) -> Any:
        sent.append(statement.name)
        return execute(statement, *arguments, **named)

    connections._execute = noted
    yield sent
    connections._execute = execute


def _claim(desk: Any) -> list[LeasedCommand]:
    return store.claim(desk.deps.connections.autocommit(), 1000, LEASE_SECONDS)


def test_what_is_claimed_comes_with_its_facts_in_one_statement(new_desk: Callable[..., Any], desk, read):
    desks = [desk, new_desk(), new_desk()]
    for each in desks:
        for _ in range(3):
            each.created(create())

    claimed = _claim(desk)

    assert len(claimed) == 9 and read == ["execution_claim"]
    assert {(command.account_id, command.intent_id) for command in claimed} == {
        (command.facts.account.id, command.facts.intent.id)
        for command in claimed
        if command.facts.account and command.facts.intent
    }


def test_entitlements_are_read_where_an_account_is_live(new_desk: Callable[..., Any], desk, read):
    live = [new_desk("live") for _ in range(2)]
    for each in (desk, *live):
        each.created(create())

    entitlements = {command.account_id: command.entitlements for command in _claim(desk)}

    assert read == ["execution_claim"]
    assert entitlements[desk.account_id] == frozenset()
    assert {entitlements[each.account_id] for each in live} == {frozenset({"trading_live"})}


def test_what_is_claimed_of_a_deleted_account_has_no_account(desk):
    desk.created(create())
    desk.execute("DELETE FROM accounts.account WHERE id = :account_id")

    [command] = _claim(desk)

    assert (command.facts.account, command.broker) == (None, None)


def test_a_cancel_needs_no_facts(desk, read):
    intent = desk.created(create())
    accept(desk, intent["intent_id"], "b1")
    desk.created(cancel(intent["intent_id"]))
    read.clear()

    [command] = _claim(desk)

    assert command.type == "CANCEL" and read == ["execution_claim"]


def test_an_amendment_waits_until_the_order_it_is_about_has_been_sent(desk):
    """It makes its intent due at once, but whoever sends the order holds the intent."""
    intent = desk.created(create())
    [sending] = _claim(desk)
    desk.created(cancel(intent["intent_id"]))

    assert str(sending.intent_id) == intent["intent_id"]
    assert not _claim(desk)


@pytest.mark.parametrize(("held", "code"), [(6, None), (5, "NOT_REDUCING"), (0, "NOT_REDUCING"), (-6, "NOT_REDUCING")])
def test_a_closing_order_is_sent_only_while_there_is_as_much_to_close(desk, held, code):
    hold(desk, AAPL=6)
    close(desk)
    until_closing(desk)
    [command] = _claim(desk)
    desk.execute("UPDATE intents.position SET quantity = :held WHERE account_id = :account_id", held=held)

    refreshed = store.refresh(desk.deps.connections.autocommit(), command)

    assert refreshed
    verdict = not_to_be_sent(refreshed)
    assert (verdict and verdict.code) == code


def test_orders_are_counted_where_a_limit_needs_it_and_without_the_order_itself(desk, read):
    for _ in range(2):
        desk.created(create(quantity="3"))
    limits(desk, max_orders_per_minute=5)
    first, *_ = _claim(desk)
    read.clear()

    refreshed = store.refresh(desk.deps.connections.autocommit(), first)

    assert refreshed and read == ["execution_refresh", "intents_facts", "intents_order_facts"]
    controls = refreshed.facts.controls
    assert controls and controls.account_orders.last_minute == controls.symbol_orders.last_day == 1
    assert controls.open_quantity == 3
