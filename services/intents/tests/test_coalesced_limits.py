"""Submits under limits that arrive at the same time: they share a transaction, and none slips past with another."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intents.store.statement import Statement
from tip_testing.commands import create

from .conftest import Desk
from .serving import create_app, introduce, send_at_once
from .test_coalesced import request
from .test_controls import limits

EVERYTHING = {
    "max_quantity": 10,
    "max_notional": 10_000,
    "max_orders_per_minute": 20,
    "max_orders_per_day": 20,
    "max_open_orders": 8,
    "max_position_quantity": 30,
    "max_position_notional": 2_500,
    "allow_short": False,
}


def priced(desk: Desk, **held: int) -> None:
    """The account holds so much of each symbol, at a price of 100."""
    for symbol, quantity in held.items():
        desk.execute(
            "INSERT INTO intents.position (account_id, symbol, quantity, last_price, updated_at, price_at, "
            "price_source) VALUES (:account_id, :symbol, :quantity, 100, now(), now(), 'fill')",
            symbol=symbol,
            quantity=quantity,
        )


def test_limits_on_many_accounts_cost_one_read_more_and_no_lock(
    desk: Desk, new_desk: Callable[..., Desk], statements: list[str]
) -> None:
    desks = [desk, *(new_desk() for _ in range(5))]
    for owner in desks[:4]:
        owner.submit(create())
        limits(owner, max_open_orders=2)
    statements.clear()

    answers = send_at_once(desk.app, [request(owner, create()) for owner in desks])

    assert [answer.status_code for answer in answers] == [201] * 6
    assert statements == ["intents_facts", "intents_order_facts", "intents_create"]


def test_the_first_order_of_an_account_is_counted_under_its_lock(desk: Desk, statements: list[str]) -> None:
    limits(desk, max_open_orders=1)

    [answer] = send_at_once(desk.app, [request(desk, create())])

    assert answer.status_code == 201
    assert statements[-3:] == ["intents_lock_accounts", "intents_order_facts", "intents_create"]


def submitting_before(desk: Desk, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first statement of that name another process submits an order on the account."""
    connections = desk.app.extensions["deps"].connections
    execute, other = connections._execute, create_app(desk.platform.web_environment("intents", LOG_LEVEL="warning"))

    def submitting(found: Statement, *arguments: Any) -> Any:
        if found.name == statement:
            monkeypatch.setattr(connections, "_execute", execute)
            path = f"/v1/accounts/{desk.account_id}/intents"
            sent = other.test_client().post(path, json=create(), headers=desk.headers)
            assert sent.status_code == 201, sent.json
            other.extensions["deps"].engine.dispose()
        return execute(found, *arguments)

    monkeypatch.setattr(connections, "_execute", submitting)


@pytest.mark.parametrize(
    ("most", "before", "statuses"),
    [
        (2, "intents_create", [422]),
        (3, "intents_create", [201]),
        (3, "intents_lock_accounts", [201, 422, 422]),  # several of one account are one transaction
    ],
)
def test_whose_account_moves_on_before_the_write_is_decided_again(
    desk: Desk,
    new_desk: Callable[..., Desk],
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    before: str,
    statuses: list[int],
) -> None:
    other = new_desk()
    desk.submit(create())
    limits(desk, max_open_orders=most)
    submitting_before(desk, before, monkeypatch)
    sent = [request(desk, create(), idempotency_key=f"k{number}") for number in range(len(statuses))]

    answers = send_at_once(desk.app, [*sent, request(other, create())])

    assert [answer.status_code for answer in answers] == [*statuses, 201]
    assert len(desk.rows("action")) == most
    assert len(desk.rows("idempotency")) == statuses.count(201)
    assert len(other.rows("action")) == 1
    assert desk.get("/verify").json["valid"] is True


def test_what_cannot_be_decided_again_at_once_is_written_once_and_the_others_too(
    desk: Desk, new_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the account that moved on is locked by somebody for longer than a batch waits."""
    other, holder = new_desk(), desk.platform.admin_url
    desk.submit(create())
    limits(desk, max_open_orders=9)
    submitting_before(desk, "intents_create", monkeypatch)
    connections = desk.app.extensions["deps"].connections
    connection = psycopg2.connect(holder)
    begin = connections.begin

    def locking(*arguments: Any) -> Any:
        monkeypatch.setattr(connections, "begin", begin)
        lock = "SELECT 1 FROM intents.account_head WHERE account_id = %s FOR UPDATE"
        connection.cursor().execute(lock, (str(desk.account_id),))
        threading.Timer(0.5, connection.close).start()
        return begin(*arguments)

    monkeypatch.setattr(connections, "begin", locking)

    answers = send_at_once(desk.app, [request(desk, create()), request(other, create())])

    assert [answer.status_code for answer in answers] == [201, 201]
    assert len(desk.rows("action")) == 3
    assert len(other.rows("action")) == 1


def test_each_of_a_batch_counts_those_before_it(desk: Desk) -> None:
    limits(desk, max_open_orders=3)

    answers = send_at_once(desk.app, [request(desk, create(quantity="1")) for _ in range(8)])

    assert [answer.status_code for answer in answers] == [201] * 3 + [422] * 5
    assert len(desk.rows("action")) == 3
    assert desk.get("/verify").json["valid"] is True
    assert len(desk.rows("refusal")) == 5


def test_batches_of_two_processes_cannot_pass_a_limit_together(desk: Desk) -> None:
    other = create_app(desk.platform.web_environment("intents", LOG_LEVEL="warning"))
    introduce(other, desk.headers["x-api-key"])
    limits(desk, max_position_quantity=25)

    def submit(app: Any) -> list[int]:
        sent = [request(desk, create(quantity="1")) for _ in range(20)]
        return [answer.status_code for answer in send_at_once(app, sent)]

    with ThreadPoolExecutor(2) as pool:
        statuses = [status for found in pool.map(submit, [desk.app, other]) for status in found]
    other.extensions["deps"].engine.dispose()

    assert sorted(statuses) == [201] * 25 + [422] * 15
    [total] = [row for row in desk.rows("order_total") if row["symbol"] == "AAPL"]
    assert total["open_buy_quantity"] == Decimal(25)


def orders(*sides: str) -> st.SearchStrategy[list[tuple[str, int, str]]]:
    order = st.tuples(st.sampled_from(["AAPL", "MSFT"]), st.integers(1, 12), st.sampled_from(sides))
    return st.lists(order, min_size=2, max_size=12)


def accepted(new_desk: Callable[..., Desk], organization: Any, batch: list[tuple[str, int, str]], **more: Any) -> Any:
    """Which of the orders are accepted at once, and which one by one."""
    together, one_by_one = (new_desk(organization=organization) for _ in range(2))
    for desk in (together, one_by_one):
        limits(desk, **EVERYTHING, **more)
        priced(desk, AAPL=5, MSFT=2)
    bodies = [create(symbol, str(quantity), side) for symbol, quantity, side in batch]
    answers = send_at_once(together.app, [request(together, body) for body in bodies])
    alone = [one_by_one.submit(body) for body in bodies]
    return [answer.status_code for answer in answers], [answer.status_code for answer in alone]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(batch=orders("BUY", "BUY", "SELL"))
def test_a_batch_is_decided_as_if_each_had_come_by_itself(
    new_desk: Callable[..., Desk], organization: Any, batch: list[tuple[str, int, str]]
) -> None:
    at_once, one_by_one = accepted(new_desk, organization, batch)

    assert at_once == one_by_one


# BUY only: what is refused is decided again by itself, and a SELL may pass once later orders have made it no increase.
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(batch=orders("BUY"))
def test_the_exposure_of_a_batch_is_that_of_all_its_symbols(
    new_desk: Callable[..., Desk], organization: Any, batch: list[tuple[str, int, str]]
) -> None:
    at_once, one_by_one = accepted(new_desk, organization, batch, max_gross_exposure=2_000)

    assert at_once == one_by_one
