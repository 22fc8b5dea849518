"""kill -9 at every step of sending two exits as one order: both rest, once, by the broker's own storage."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tip_testing.commands import replace
from tip_testing.waiting import eventually

from .pairs import Exits, bought, exits, limit, new_symbol

STEPS = (
    "executor.after_claim",
    "executor.before_send",
    "executor.after_send",
    "executor.before_commit",
    "executor.after_commit",
)
OF_THE_STOP = ("executor.after_claim", "executor.before_commit", "executor.after_commit")

pytestmark = pytest.mark.usefixtures("credulous_broker")


@pytest.fixture
def credulous_broker(paper: Any) -> Iterator[None]:
    """Takes the same client order id twice, so that only a query first can save us."""
    paper.faults(accept_duplicate_client_order_ids=True)
    yield
    paper.faults()


class Survivors:
    """An executor and a reconciler to which nothing happens, but that they stop for a while."""

    def __init__(self, start: Any) -> None:
        self.executor, self.reconciler = start("executor"), start("reconciler")

    @contextmanager
    def stopped(self, *, reports: bool) -> Iterator[None]:
        """`reports`: what the broker's stream says is recorded meanwhile."""
        workers = [self.executor] if reports else [self.executor, self.reconciler]
        for worker in workers:
            worker.freeze()
        yield
        for worker in workers:
            worker.thaw()


@pytest.fixture(scope="module")
def survivors(start: Any) -> Survivors:
    return Survivors(start)


@pytest.fixture
def position(desk: Any, paper: Any, reaches: Callable[..., Any], survivors: Survivors) -> Exits:
    symbol = new_symbol(paper)
    bought(desk, symbol, reaches)
    return Exits(desk, paper, symbol)


def kill(start: Any, step: str) -> Callable[[], None]:
    """Have an executor run that dies at the step; call the result to wait for that."""
    doomed = start("executor", wait=False, TIP_CRASH_AT=step)

    def wait() -> None:
        eventually(lambda: doomed.returncode() is not None, 90)
        assert doomed.returncode() == -signal.SIGKILL

    return wait


def assert_one_pair(found: Exits) -> None:
    found.reach(90, one="ACCEPTED", other="ACCEPTED")
    orders, legs = found.at_broker(), found.legs()
    assert {kind: orders[kind]["status"] for kind in ("limit", "stop")} == {"limit": "new", "stop": "held"}
    assert legs["one"]["broker_order_id"] == orders["limit"]["order_id"]
    assert legs["other"]["broker_order_id"] == orders["stop"]["order_id"]
    assert found.strangers() == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("reports", [False, True], ids=["by query", "by report"])
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_while_the_pair_is_sent_leaves_one_pair(
    step: str, reports: bool, position: Exits, survivors: Survivors, start: Any
) -> None:
    with survivors.stopped(reports=reports):
        is_dead = kill(start, step)
        position.desk.created(exits(position.symbol))
        is_dead()

    assert_one_pair(position)


def lose_at(start: Any, position: Exits, *steps: str) -> None:
    """Have the pair sent by executors of which each dies at its step."""
    first, *others = steps
    is_dead = kill(start, first)
    position.desk.created(exits(position.symbol))
    is_dead()
    for step in others:
        kill(start, step)()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", OF_THE_STOP)
def test_a_kill_while_the_stop_is_read_leaves_one_pair(
    step: str, position: Exits, survivors: Survivors, start: Any
) -> None:
    with survivors.stopped(reports=False):
        lose_at(start, position, "executor.after_commit", step)
        assert position.legs()["other"]["broker_order_id"] == position.at_broker()["stop"]["order_id"]

    assert_one_pair(position)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", OF_THE_STOP)
def test_a_kill_while_the_stop_is_searched_leaves_one_pair(
    step: str, position: Exits, survivors: Survivors, start: Any
) -> None:
    """The answer that shows it is lost, and the broker's stream has reported the Limit."""
    with survivors.stopped(reports=True):
        lose_at(start, position, "executor.after_send")
        position.reach(90, one="ACCEPTED", other="PENDING")
        kill(start, step)()

    assert_one_pair(position)


@pytest.mark.timeout(300)
def test_a_fill_of_the_stop_is_not_lost_with_whoever_was_to_read_it(
    position: Exits, survivors: Survivors, start: Any
) -> None:
    with survivors.stopped(reports=False):
        lose_at(start, position, "executor.after_commit", "executor.after_claim")
        position.paper.quote(position.symbol, "88", "89")

    position.reach(90, one="CANCELED", other="FILLED")
    assert position.strangers() == []
    eventually(lambda: [row["quantity"] for row in position.desk.rows("position")] == [0], 60)


@pytest.mark.timeout(300)
def test_a_limit_that_is_replaced_before_its_stop_is_found_keeps_it(
    position: Exits, survivors: Survivors, start: Any
) -> None:
    with survivors.stopped(reports=True):
        lose_at(start, position, "executor.after_send")
        position.reach(90, one="ACCEPTED", other="PENDING")
        due(position, "1 hour")
        position.desk.created(replace(position.legs()["one"]["id"], **limit("120")))

    eventually(lambda: position.at_broker()["limit"]["limit_price"] == "120", 60)
    due(position, "0 hours")

    assert_one_pair(position)


def due(position: Exits, later: str) -> None:
    """When the stop is searched next."""
    position.desk.execute(
        f"UPDATE intents.intent SET next_attempt_at = now() + interval '{later}' WHERE id = :id",
        id=position.legs()["other"]["id"],
    )
