"""The broker's truth of every enabled account: read when it is linked, regularly, and when somebody asks for it."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event

from intents.execution import store
from intents.execution.account_reads import AccountReads
from intents.execution.credentials import derived
from intents.execution.model.known_orders import Holdings
from intents.execution.model.read_schedule import ReadSchedule
from tip_broker_alpaca.account import Connection
from tip_brokers import Balance, NewOrder
from tip_testing.commands import create
from tip_testing.waiting import eventually

from .conftest import PAPER_SECRET

UNHURRIED = {"HOLDING_READ_SECONDS": "3600", "IDLE_READ_SECONDS": "3600", "RECONCILE_SECONDS": "3600"} | {
    "BROKER_STREAMS": "0"  # a database made from a template counts as restored, so its accounts would be followed
}


@pytest.fixture
def reconcile(start: Any) -> Iterator[Callable[..., None]]:
    """A reconciler that runs until the test has ended."""
    started: list[Any] = []
    yield lambda **settings: started.append(start("reconciler", **settings))
    for process in started:
        process.end()


def buy_elsewhere(desk: Any, paper: Any, symbol: str, quantity: str) -> None:
    """The account's owner trades at the broker itself, past the platform."""
    broker = Connection(paper.url).account(derived(desk.account_id, PAPER_SECRET))
    broker.create(NewOrder(f"own-{uuid4().hex}", symbol, "BUY", "Market", Decimal(quantity), "DAY"))
    eventually(lambda: symbol in {position.symbol for position in broker.positions()})


def held(desk: Any) -> dict[str, str]:
    answer = desk.client.get(f"/v1/accounts/{desk.account_id}/positions", headers=desk.headers)
    return {position["symbol"]: position["quantity"] for position in answer.json["data"]}


def set_state(desk: Any, state: str) -> None:
    desk.execute(
        "INSERT INTO controls.account_switch (account_id, organization_id, trading_state) "
        "VALUES (:account_id, :organization_id, :state)",
        organization_id=desk.organization.id,
        state=state,
    )


def test_what_a_newly_linked_account_holds_is_shown_without_any_intent_and_can_be_closed(desk, paper, reconcile):
    paper.quote("HELD", "50", "51")
    buy_elsewhere(desk, paper, "HELD", "7")
    reconcile(**UNHURRIED)

    eventually(lambda: held(desk) == {"HELD": "7"})
    balance = desk.client.get(f"/v1/accounts/{desk.account_id}/balances", headers=desk.headers).json
    assert balance["cash"] and balance["as_of"] and balance["source"] == "broker"
    set_state(desk, "REDUCING")

    assert desk.submit(create("HELD", "7", side="SELL")).status_code == 201
    assert desk.submit(create("HELD", "1", side="BUY")).status_code == 422


def test_a_refresh_reads_the_account_at_once(desk, paper, reconcile):
    paper.quote("FRESH", "50", "51")
    reconcile(**UNHURRIED)
    eventually(lambda: desk.rows("balance"))
    buy_elsewhere(desk, paper, "FRESH", "3")
    time.sleep(1.1)
    assert held(desk) == {}

    began = time.monotonic()
    desk.client.post(f"/v1/accounts/{desk.account_id}/refresh", headers=desk.headers)

    eventually(lambda: held(desk) == {"FRESH": "3"})
    assert time.monotonic() - began < 10, "an hour before its time"


def test_a_price_is_read_when_somebody_asks_for_it(desk, paper, reconcile):
    paper.quote("PRICED", "50", "52")
    reconcile(**UNHURRIED)
    path = f"/v1/accounts/{desk.account_id}/quotes/PRICED"

    def shown() -> Any:
        answer = desk.client.get(path, headers=desk.headers).json
        return answer if answer["last"] else None

    quote = eventually(shown)
    assert (quote["bid"], quote["ask"], quote["last"], quote["source"]) == ("50.0", "52.0", "51.0", "paper")
    assert quote["age_seconds"] < 60


def test_prices_of_what_is_held_are_read_with_it(desk, paper, reconcile):
    paper.quote("WORTH", "50", "52")
    buy_elsewhere(desk, paper, "WORTH", "2")
    reconcile(HOLDING_READ_SECONDS="1")

    eventually(lambda: "WORTH" in {row["symbol"] for row in desk.rows("quote")})
    paper.quote("WORTH", "60", "62")

    def worth() -> Any:
        answer = desk.client.get(f"/v1/accounts/{desk.account_id}/positions", headers=desk.headers)
        [position] = answer.json["data"]
        return Decimal(position["market_value"]) == 122 and position["price_as_of"]

    assert eventually(worth)


@pytest.fixture
def reads(desk: Any) -> Callable[..., AccountReads]:
    """Reconcilers that claim, and read nothing. Only the accounts of this test are due."""
    desk.execute("UPDATE intents.broker_account SET next_read_at = NULL, lease_until = NULL")
    desk.execute("DELETE FROM intents.broker_pace")

    def make(rate: float = 1000.0) -> AccountReads:
        return AccountReads(desk.deps.engine, uuid4(), ReadSchedule(reads_per_second=rate))

    return make


def due(desk: Any, *accounts: UUID) -> None:
    for account_id in accounts or (desk.account_id,):
        desk.execute(
            "INSERT INTO intents.broker_account (account_id, next_read_at) VALUES (:id, now()) "
            "ON CONFLICT (account_id) DO UPDATE SET next_read_at = now()",
            id=account_id,
        )


def test_whoever_requests_a_read_never_waits_for_a_reconciler_to_get_a_processor(desk, reads):
    due(desk)
    reader, was_free = reads(), []

    def look(*_statement: Any) -> None:
        free = "SELECT FROM intents.broker_account WHERE account_id = :account_id FOR UPDATE SKIP LOCKED"
        was_free.append(desk.execute(free).rowcount == 1)

    event.listen(reader.engine, "after_cursor_execute", look)
    reader.claim(60)
    reader.postpone(desk.account_id)
    reader.release(desk.account_id)
    reader.enroll()
    event.remove(reader.engine, "after_cursor_execute", look)

    assert len(was_free) > 6 and all(was_free), "between any two messages to the database"


def test_an_account_is_read_by_one_reconciler_only(desk, reads):
    due(desk)
    first, second = reads(), reads()

    assert first.claim(60) == [desk.account_id]
    due(desk)
    assert second.claim(60) == [], "whoever leases it reads it"
    assert first.claim(60) == [desk.account_id]
    first.release(desk.account_id)
    due(desk)
    assert second.claim(60) == [desk.account_id]


@pytest.mark.parametrize("succeeds", [True, False])
def test_a_read_requested_while_the_account_is_read_stands(desk, reads, succeeds):
    due(desk)
    reader, engine = reads(), desk.deps.engine
    reader.claim(60)
    attempted = desk.rows("broker_account")[0]["attempted_at"]
    desk.client.post(f"/v1/accounts/{desk.account_id}/refresh", headers=desk.headers)

    if succeeds:
        with engine.begin() as tx:
            holdings = Holdings([], Balance("USD", *3 * [Decimal(1)]), store.now(tx), 0, {}, ())
            store.save_holdings(tx, desk.account_id, holdings, 3600)
    else:
        reader.postpone(desk.account_id, 3600)

    assert desk.rows("broker_account")[0]["next_read_at"] == attempted + timedelta(seconds=1)


def test_a_read_that_was_never_finished_is_due_again(desk, reads):
    due(desk)
    reads().claim(0)

    [row] = desk.rows("broker_account")
    assert row["attempted_at"] < row["next_read_at"] < datetime.now(UTC) + timedelta(minutes=1)


def test_reconcilers_together_keep_to_the_pace_of_a_broker(new_desk, desk, reads):
    accounts = [new_desk(organization=desk.organization).account_id for _ in range(8)]
    due(desk, *accounts)
    many, began = [reads(rate=2.0) for _ in range(4)], time.monotonic()

    claimed = [account_id for reconciler in many for account_id in reconciler.claim(60)]

    earned = int(2.0 * (time.monotonic() - began))  # meanwhile, beside the two of the second before
    assert len(claimed) == len(set(claimed))
    assert 2 <= len(claimed) <= 2 + earned


def test_organizations_take_turns(new_desk, desk, reads):
    crowd = [new_desk(organization=desk.organization).account_id for _ in range(6)]
    due(desk, *crowd)
    alone = new_desk()
    due(alone)

    assert alone.account_id in reads(rate=2.0).claim(60)


def test_every_enabled_account_has_a_time_and_a_disabled_one_has_none(new_desk, desk, reads):
    other = new_desk()
    other.execute("UPDATE accounts.account SET disabled = true WHERE id = :account_id")
    due(other)

    reads().enroll()

    assert desk.rows("broker_account")[0]["next_read_at"] and other.rows("broker_account")[0]["next_read_at"] is None
    assert desk.rows("broker_account")[0]["organization_id"] == desk.organization.id


def test_a_broker_that_is_down_is_tried_again_and_later_each_time(desk, reads):
    due(desk)
    reconciler, pauses = reads(), []
    for _ in range(4):
        due(desk)
        reconciler.claim(60)
        reconciler.postpone(desk.account_id)
        [row] = desk.rows("broker_account")
        pauses.append((row["next_read_at"] - row["attempted_at"]).total_seconds())

    assert pauses[0] < pauses[1] < pauses[2] < pauses[3] < 30


@pytest.fixture
def spent_pace(desk: Any) -> Iterator[None]:
    """No read of the paper broker is granted for an hour."""
    desk.execute(
        "INSERT INTO intents.broker_pace VALUES ('paper', now() + interval '1 hour') "
        "ON CONFLICT (broker) DO UPDATE SET paid_until = excluded.paid_until"
    )
    yield
    desk.execute("DELETE FROM intents.broker_pace")


@pytest.mark.usefixtures("spent_pace")
def test_an_account_with_open_orders_does_not_wait_for_the_pace(desk, reconcile):
    desk.created(create("OPEN", "1"))
    reconcile(BROKER_STREAMS="0", RECONCILE_SECONDS="0.2")

    moments: set[datetime] = set()
    assert eventually(lambda: moments.update(row["updated_at"] for row in desk.rows("balance")) or len(moments) > 2)
