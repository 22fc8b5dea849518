"""One organization, whatever it does at its broker, does not keep another from trading there."""

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
import requests
from sqlalchemy import event

from intents.execution import store
from intents.execution.account_reads import AccountReads
from intents.execution.broker_dispatcher import BrokerDispatcher
from intents.execution.client_order_id import client_order_id
from intents.execution.credentials import Credentials
from intents.execution.executor import Executor
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.inputs import BrokerReport, DispatchResult
from intents.execution.model.known_orders import Holdings
from intents.execution.model.verdicts import RetryLater
from intents.execution.recorder import FEW, Recorded, portions
from tip_brokers import Balance, Brokers, BrokerSettings, OrderStatus, Position
from tip_testing.commands import create
from tip_testing.ports import reserved_port
from tip_testing.waiting import eventually

from ..broker_side import accept, fill
from ..conftest import Desk
from .scripted import PATIENCE_SECONDS, PATIENT
from .sending import NOW
from .settlements import order

LEASE_SECONDS = 600
LANE = "paper paper"


@pytest.fixture
def nothing_due(desk: Desk) -> None:
    """What other tests have left is out of the way."""
    while store.claim(desk.deps.connections.autocommit(), 1000, LEASE_SECONDS):
        pass


@pytest.fixture
def claim(desk: Desk) -> Callable[..., list[LeasedCommand]]:
    def take(limit: int, **shares: Any) -> list[LeasedCommand]:
        chosen = store.Shares(limit, shares.pop("allowances", {}), shares.pop("of_others", limit), **shares)
        return store.claim(desk.deps.connections.autocommit(), limit, LEASE_SECONDS, shares={LANE: chosen})

    return take


def counts(claimed: list[LeasedCommand], *desks: Desk) -> list[int]:
    by_organization = Counter(command.organization_id for command in claimed)
    return [by_organization[desk.organization.id] for desk in desks]


def fill_up(desk: Desk, number: int) -> list[Any]:
    return [desk.created(create(symbol="SIM.OPEN")) for _ in range(number)]


def test_a_claim_takes_as_much_of_each_organization_however_much_one_has_waiting(nothing_due, new_desk, claim):
    loud, quiet, quieter = new_desk(), new_desk(), new_desk()
    second = new_desk(organization=loud.organization)
    fill_up(loud, 20)
    fill_up(second, 20)
    fill_up(quiet, 5)
    fill_up(quieter, 1)

    assert counts(claim(9), loud, quiet, quieter) == [3, 3, 1]
    assert counts(claim(9), loud, quiet, quieter) == [5, 2, 0]
    assert counts(claim(50), loud, quiet, quieter) == [32, 0, 0], "nobody else waits"


def test_what_an_organization_has_waiting_is_claimed_in_its_order(nothing_due, new_desk, claim):
    desk = new_desk()
    intents = [UUID(action["intent_id"]) for action in fill_up(desk, 6)]

    claimed = [
        command.intent_id for _ in range(3) for command in sorted(claim(2), key=lambda command: command.created_at)
    ]

    assert claimed == intents


def test_organizations_whose_turn_it_was_come_last(nothing_due, new_desk, claim):
    desks = sorted((new_desk() for _ in range(4)), key=lambda desk: desk.organization.id)
    for desk in desks:
        fill_up(desk, 3)

    limiter = [counts(claim(2, after=desks[last].organization.id), *desks) for last in (3, 1, 0)]

    assert limiter == [[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]]


def test_an_organization_that_has_its_share_in_hand_is_left_out(nothing_due, new_desk, claim):
    loud, quiet = new_desk(), new_desk()
    fill_up(loud, 10)
    fill_up(quiet, 3)

    assert counts(claim(10, allowances={loud.organization.id: 0}), loud, quiet) == [0, 3]
    assert counts(claim(10, allowances={loud.organization.id: 4}), loud, quiet) == [4, 0]
    assert counts(claim(10, of_others=2), loud, quiet) == [2, 0]


@pytest.fixture
def executor(desk: Desk, nothing_due, monkeypatch) -> Iterator[Executor]:
    """Each of its calls goes on until `permits` lets one end; what was done is in `done`."""
    dispatcher = BrokerDispatcher(Brokers(BrokerSettings()), Credentials(desk.deps.engine, "for-tests-only"))
    made = Executor(desk.deps.connections, dispatcher, threads=32, lease_seconds=LEASE_SECONDS)
    permits, done = threading.Semaphore(0), queue.SimpleQueue()

    def do(command: LeasedCommand) -> None:
        permits.acquire()
        done.put(command)

    monkeypatch.setattr(made, "_do", do)
    monkeypatch.setattr(made, "permits", permits, raising=False)
    monkeypatch.setattr(made, "done", done, raising=False)
    yield made
    permits.release(1000)


def one_ends(executor: Any) -> None:
    executor.permits.release()
    ended = executor.done.get()
    executor._recorded([DispatchResult(ended, RetryLater(60.0, "for this test"))])


@pytest.mark.parametrize(("waiting", "is_claimed_again"), [(2, False), (40, True)])
def test_who_has_more_waiting_is_claimed_as_soon_as_a_call_ends_although_another_has_a_blocked_account(
    waiting, is_claimed_again, executor, new_desk
):
    blocked, prompt = new_desk(), new_desk()
    fill_up(blocked, 2 * executor.account_calls)
    executor._take()
    assert list(executor.lanes[LANE].limiter.blocked()) == [blocked.account_id]
    fill_up(prompt, waiting)
    executor._take()
    assert executor._alarm.seconds > 0

    one_ends(executor)

    assert (executor._alarm.seconds <= 0) == is_claimed_again


def test_what_ends_in_a_lane_that_is_not_to_be_searched_yet_is_followed_by_a_claim_once_it_is(executor, new_desk):
    first = new_desk()
    for desk in (first, *(new_desk(organization=first.organization) for _ in range(5))):
        fill_up(desk, executor.account_calls - 1)
    while executor._take():
        pass
    executor.lanes[LANE].busy_until = time.monotonic() + 60

    one_ends(executor)

    assert executor._alarm.seconds == pytest.approx(60, abs=5)


def test_what_was_left_out_of_a_claim_is_claimed_as_soon_as_its_account_has_a_call_free(executor, new_desk):
    busy = new_desk()
    fill_up(busy, executor.account_calls + 1)
    executor._take()
    assert list(executor.lanes[LANE].limiter.blocked()) == [busy.account_id]
    fill_up(busy, 2)
    executor._take()

    executor.permits.release()
    ended = executor.done.get()
    eventually(lambda: executor.lanes[LANE].limiter.blocked() == {})
    executor._recorded([DispatchResult(ended, RetryLater(60.0, "for this test"))])

    assert executor._alarm.seconds <= 0


def test_orders_of_one_organization_that_time_out_do_not_delay_those_of_others(new_desk, start, paper):
    """Six accounts of one organization with an order that never answers in every thread there is, and more waiting."""
    paper.quote("PROMPT", "9", "10")
    port, threads = str(reserved_port()), 8
    first = new_desk()
    attackers = [first, *(new_desk(organization=first.organization) for _ in range(5))]
    others = [new_desk() for _ in range(3)]
    workers = [start("reconciler"), start("executor", HEALTH_PORT=port, EXECUTOR_THREADS=str(threads))]
    for _ in range(12):
        for attacker in attackers:
            attacker.created(create(symbol="SIM.TIMEOUT_AFTER_ACCEPT"))

    names = {client_order_id(row["id"]) for attacker in attackers for row in attacker.rows("action")}

    def sent() -> int:
        return sum(order["client_order_id"] in names for order in paper.ledger())

    eventually(lambda: sent() > threads)
    before = sent()
    for other in others:
        other.created(create(symbol="PROMPT"))
    eventually(lambda: all(row["status"] == "FILLED" for other in others for row in other.rows("intent")))
    after = sent()

    assert after - before <= 2 * threads, "the others do not stand in line behind the attacker's orders"
    assert after < len(names), "some of which still wait"
    circuits = requests.get(f"http://127.0.0.1:{port}/health/ready", timeout=60).json()["circuits"]
    for worker in workers:
        worker.end()
    assert circuits == {"paper paper": "closed"}


def test_slow_accounts_of_one_organization_do_not_delay_the_reconciliation_of_others(new_desk, start, scripted):
    slow, rounds = 20, 6
    first, other = new_desk(), new_desk()
    attackers = [first, *(new_desk(organization=first.organization) for _ in range(slow - 1))]
    for number, desk in enumerate((*attackers, other)):
        accept(desk, desk.created(create(symbol="SIM.OPEN"))["intent_id"], f"slow-{number}")
    keys = {str(desk.account_id) for desk in attackers}
    scripted.slow, scripted.slow_seconds = keys, PATIENCE_SECONDS
    start("reconciler", PAPER_BROKER_URL=scripted.url, RECONCILE_SECONDS="0.5", **PATIENT)

    def queries() -> Counter[str | None]:
        return Counter(scripted.key_ids)

    eventually(lambda: queries()[str(other.account_id)] >= rounds, PATIENCE_SECONDS)

    assert 0 < sum(queries()[key] for key in keys) < slow, "it did not have to wait for a round of theirs"


def reports(account_id: UUID, count: int) -> list[BrokerReport]:
    names = [f"order-{number}" for number in range(count)]
    return [BrokerReport(account_id, order(OrderStatus.WORKING, name=name), NOW) for name in names]


def test_few_orders_are_not_recorded_with_the_hundred_of_another_account():
    """A transaction keeps the log of each of its accounts locked until the last order is written."""
    loud, quiet, quieter = (reports(uuid4(), count) for count in (100, 1, FEW))

    few, many = portions([*loud[:50], *quiet, *loud[50:], *quieter])

    assert (few, many) == ([*quiet, *quieter], loud)


def test_what_is_recorded_of_one_account_alone_shares_a_transaction():
    inputs = reports(uuid4(), 100)

    assert portions(inputs) == [inputs] and portions(inputs[:1]) == [inputs[:1]] and portions([]) == []


def test_no_log_is_locked_while_who_saves_what_an_account_holds_waits_for_a_processor(desk):
    """Between its messages to the database it may wait for long."""
    reads, could_lock = AccountReads(desk.deps.engine, uuid4()), []
    positions = [Position("ABC", Decimal(3), None, None, None, None)]
    funds = Balance("USD", *3 * [Decimal(1)])

    def look(*_: Any) -> None:
        row = desk.execute("SELECT 1 FROM intents.account_head WHERE account_id = :account_id FOR UPDATE SKIP LOCKED")
        could_lock.append(row.first() is not None)

    desk.created(create(symbol="SIM.OPEN"))
    holdings = Holdings(positions, funds, datetime.now(UTC), 0, {}, ())
    reads.save(desk.account_id, "derived", "one", holdings)
    event.listen(desk.deps.engine, "after_cursor_execute", look)
    head = reads.save(desk.account_id, "derived", "one", holdings._replace(positions=[], began_at=datetime.now(UTC)))
    event.remove(desk.deps.engine, "after_cursor_execute", look)

    assert could_lock == [True] and head is not None


def test_no_log_is_locked_while_who_has_recorded_a_fill_waits_for_a_processor(new_desk, monkeypatch):
    """A submit to the account would wait for as long."""
    desk = new_desk()
    working = accept(desk, desk.created(create(symbol="SIM.OPEN"))["intent_id"], "b1")
    could_lock = []
    of = Recorded.of

    def paused(written: Any) -> Recorded:
        row = desk.execute("SELECT 1 FROM intents.account_head WHERE account_id = :account_id FOR UPDATE SKIP LOCKED")
        could_lock.append(row.first() is not None)
        return of(written)

    monkeypatch.setattr(Recorded, "of", paused)
    fill(desk, working, "10", "5", "e1")

    assert could_lock == [True]
    assert desk.rows("intent")[0]["status"] == "FILLED"
