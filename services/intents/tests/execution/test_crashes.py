"""kill -9 and SIGSTOP at every step: one order for each intent, by the broker's own storage."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from tip_testing.commands import create
from tip_testing.waiting import eventually

STEPS = (
    "executor.after_claim",
    "executor.before_send",
    "executor.after_send",
    "executor.before_commit",
    "executor.after_commit",
)


@pytest.fixture
def credulous_broker(paper: Any) -> Iterator[None]:
    """Takes the same client order id twice, so that only a query first can save us."""
    paper.faults(accept_duplicate_client_order_ids=True)
    yield
    paper.faults()


@pytest.fixture
def survivor(start: Any) -> Callable[[], None]:
    """Have an executor run to which nothing happens, the same for all tests here."""

    def run() -> None:
        if not hasattr(start, "survivor"):
            start.survivor = start("executor")

    return run


@pytest.mark.usefixtures("credulous_broker")
def test_a_kill_at_any_step_neither_loses_nor_doubles_an_order(desk, start, survivor, orders, reaches):
    doomed = [start("executor", wait=False, TIP_CRASH_AT=step) for step in STEPS]
    intents = []

    def all_dead() -> bool:
        # Work for those that are left: one intent, one victim.
        intents.append(desk.created(create("SIM.OPEN", "1")))
        return all(worker.returncode() is not None for worker in doomed)

    eventually(all_dead, 90, every=0.1)
    assert [worker.returncode() for worker in doomed] == [-signal.SIGKILL] * len(STEPS)

    survivor()
    for intent in intents:
        reaches(intent, "ACCEPTED", seconds=60)
    assert len(orders()) == len(intents)


def test_a_frozen_executor_that_wakes_up_sends_nothing(desk, start, survivor, orders, reaches):
    survivor()
    intent = _taken_by_one_that_freezes(desk, start)
    taken_over = reaches(intent, "ACCEPTED")  # by the other one

    frozen = start.frozen
    frozen.thaw()
    eventually(lambda: not frozen.is_frozen())
    with hold_others(start, frozen):
        reaches(desk.created(create("SIM.OPEN", "1")), "ACCEPTED")  # by the one that was frozen: it is at work again

    first = next(order for order in orders() if order["order_id"] == taken_over["broker_order_id"])
    assert first["posts"] == 1, "what it had in hand has become too old to be sent"
    assert len(orders()) == 2 and frozen.returncode() is None


def test_a_halt_is_obeyed_by_an_executor_that_was_frozen_before_it(desk, start, orders, reaches):
    """The age of what it knows counts from before the claim, and goes on while the process is stopped."""
    for other in start.started:
        other.end()
    vars(start).pop("survivor", None)
    intent = _taken_by_one_that_freezes(desk, start)
    desk.execute(
        "INSERT INTO controls.account_switch (account_id, organization_id, trading_state) "
        "VALUES (:account_id, :organization_id, 'HALTED')",
        organization_id=desk.organization.id,
    )
    time.sleep(2.5)  # longer than facts may be old

    start.frozen.thaw()

    assert reaches(intent, "DENIED", seconds=60)["reason_code"] == "TRADING_HALTED"
    assert orders() == []


@contextmanager
def hold_others(start: Callable[..., Any], but: Any) -> Iterator[None]:
    others = [worker for worker in start.started if worker.returncode() is None and worker is not but]
    for worker in others:
        worker.freeze()
    yield
    for worker in others:
        worker.thaw()


def _taken_by_one_that_freezes(desk: Any, start: Callable[..., Any]) -> Any:
    """The others are stopped for as long as it takes the doomed one to take the intent."""
    others = [worker for worker in start.started if worker.returncode() is None]
    for worker in others:
        worker.freeze()
    start.frozen = start("executor", TIP_STOP_AT="executor.before_send")
    intent = desk.created(create("SIM.OPEN", "1"))
    eventually(start.frozen.is_frozen)
    for worker in others:
        worker.thaw()
    return intent


def test_an_emptied_queue_loses_nothing(desk, platform, survivor, orders, reaches):
    survivor()
    intents = []
    with redis.Redis.from_url(platform.redis_url) as queue:
        for _ in range(20):
            intents.append(desk.created(create("SIM.OPEN", "1")))
            queue.flushall()

    for intent in intents:
        reaches(intent, "ACCEPTED")
    assert sorted(order["posts"] for order in orders()) == [1] * len(intents)
