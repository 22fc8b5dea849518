"""What a dead executor held is taken over at once, what a live one holds is not; one without its lock sends nothing."""

import signal
import threading
from typing import Any

import pytest

from intents.execution import store
from intents.execution.broker_dispatcher import BrokerDispatcher
from intents.execution.clock import elapsed
from intents.execution.credentials import Credentials
from intents.execution.liveness import Liveness
from intents.execution.model.verdicts import RetryLater
from intents.store.connections import PreparedConnections
from tip_brokers import Brokers
from tip_testing.commands import create
from tip_testing.processes import Running
from tip_testing.waiting import eventually

from .paper_connections import at
from .scripted import Scripted

LONG_LEASE = {"EXECUTOR_LEASE_SECONDS": "600"}


@pytest.fixture
def successor(start: Any) -> Running:
    """Runs beside the others, suspended until the test lets it go: it has its session and takes no work yet."""
    worker = start("executor", **LONG_LEASE)
    worker.freeze()
    return worker


@pytest.fixture(autouse=True)
def _no_executor_is_left_over(start: Any) -> Any:
    yield
    for worker in start.started:
        worker.end()


def killed_at(step: str, desk: Any, start: Any) -> Any:
    """An intent whose executor was killed there."""
    victim = start("executor", TIP_CRASH_AT=step, **LONG_LEASE)
    intent = desk.created(create("SIM.OPEN", "1"))
    assert victim.wait(60) == -signal.SIGKILL
    return intent


def holder_of(desk: Any, intent: Any) -> int | None:
    [row] = [row for row in desk.rows("intent") if str(row["id"]) == intent["intent_id"]]
    return row["lease_holder"]


def test_what_a_killed_executor_had_sent_is_taken_over_long_before_its_lease_ends(
    desk, start, successor, orders, reaches
):
    intent = killed_at("executor.after_send", desk, start)
    successor.thaw()

    reaches(intent, "ACCEPTED", seconds=60)

    assert [order["posts"] for order in orders()] == [1]


def test_what_a_killed_executor_had_not_sent_is_sent_once_by_its_successor(desk, start, successor, orders, reaches):
    intent = killed_at("executor.before_send", desk, start)
    successor.thaw()

    reaches(intent, "ACCEPTED", seconds=60)

    assert [order["posts"] for order in orders()] == [1]


def test_the_lease_of_a_suspended_executor_is_not_taken(desk, start, successor, orders, reaches):
    suspended = start("executor", TIP_STOP_AT="executor.before_send", **LONG_LEASE)
    held = desk.created(create("SIM.OPEN", "1"))
    eventually(suspended.is_frozen)
    holder = holder_of(desk, held)
    orphan = killed_at("executor.after_send", desk, start)

    successor.thaw()
    reaches(orphan, "ACCEPTED", seconds=60)  # so the successor has checked for leases of the dead

    assert holder is not None and holder_of(desk, held) == holder
    assert len(orders()) == 1


@pytest.fixture
def liveness(desk: Any) -> Any:
    made = Liveness(desk.deps.engine, PreparedConnections(desk.deps.engine))
    yield made
    made.close()


@pytest.fixture
def dispatcher(desk: Any, scripted: Scripted, liveness: Liveness) -> BrokerDispatcher:
    brokers = Brokers(at(scripted.url, connect_seconds=5, read_seconds=10))
    return BrokerDispatcher(brokers, Credentials(desk.deps.engine, "for-tests-only"), is_current=liveness.is_current)


def test_one_of_the_executors_that_live_is_the_first_until_it_dies(desk, liveness):
    other = Liveness(desk.deps.engine, PreparedConnections(desk.deps.engine))
    liveness.holder(), other.holder()
    for each in (liveness, other):
        each.check()
    first, second = (liveness, other) if liveness.is_first else (other, liveness)
    assert (first.is_first, second.is_first) == (True, False)

    first.close()
    eventually(lambda: (second.check(), second.is_first)[1])
    second.close()


def terminate_session(desk: Any, holder: int) -> None:
    of_holder = "FROM pg_locks WHERE locktype = 'advisory' AND objid = :holder"
    desk.execute(f"SELECT pg_terminate_backend(pid) {of_holder}", holder=holder)
    eventually(lambda: not desk.execute(f"SELECT 1 {of_holder}", holder=holder).all())


def test_an_executor_whose_session_was_terminated_does_not_send_what_it_had_claimed(
    desk, liveness, dispatcher, scripted
):
    desk.created(create("SIM.OPEN", "1"))
    holder = liveness.holder()
    [command] = store.claim(desk.deps.connections.autocommit(), 1000, 60, holder=holder)

    scripted.says(200, {"id": "the account"})

    terminate_session(desk, holder)
    verdict = dispatcher.dispatch(command)

    assert isinstance(verdict, RetryLater) and [method for method, _, _ in scripted.requests] == ["GET"]
    assert liveness.holder() != holder and not liveness.is_current(holder)
    desk.execute("DELETE FROM intents.intent WHERE account_id = :account_id")


def test_an_executor_that_cannot_confirm_its_lock_any_more_does_not_send(liveness):
    """A session may end at the server alone, as when another server takes over the address."""
    holder = liveness.holder()
    assert liveness.is_current(holder)

    liveness.clock = lambda: elapsed() + 60

    assert not liveness.is_current(holder)


def test_a_lock_that_the_server_no_longer_has_is_replaced(liveness):
    holder = liveness.holder()
    liveness.session.connection.cursor().execute("SELECT pg_advisory_unlock_all()")

    liveness.check()

    assert not liveness.is_current(holder)
    assert liveness.holder() != holder


def test_leases_of_a_holder_that_is_gone_are_released_and_those_of_a_live_one_are_not(desk, liveness):
    intents = [desk.created(create("SIM.OPEN", "1")) for _ in range(2)]
    mine = liveness.holder()
    store.claim(desk.deps.connections.autocommit(), 1, 600, holder=mine)
    store.claim(desk.deps.connections.autocommit(), 1, 600, holder=2**31 - 1)

    eventually(liveness.check)

    assert sorted([holder_of(desk, intent) for intent in intents], key=str) == sorted([mine, None], key=str)
    desk.execute("DELETE FROM intents.intent WHERE account_id = :account_id")


@pytest.fixture
def nothing_open(desk: Any) -> Any:
    """No command of anybody."""
    desk.execute("UPDATE intents.intent SET open_actions = 0")
    yield
    desk.execute("DELETE FROM intents.intent WHERE account_id = :account_id")


def test_executors_rest_only_while_no_command_is_open(desk, liveness, nothing_open):
    liveness.check()
    assert liveness.is_idle

    desk.created(create("SIM.OPEN", "1"))
    liveness.check()
    assert not liveness.is_idle


def test_a_wake_up_ends_the_rest_even_while_a_check_is_under_way(desk, liveness, nothing_open, monkeypatch):
    read = store.holders

    def woken_meanwhile(tx: Any) -> Any:
        found = read(tx)
        liveness.attend()
        return found

    monkeypatch.setattr(store, "holders", woken_meanwhile)
    liveness.check()
    assert not liveness.is_idle

    monkeypatch.undo()
    liveness.check()
    assert liveness.is_idle


def test_after_a_rest_what_is_claimed_may_be_sent_at_once(liveness, nothing_open):
    holder = liveness.holder()
    now = elapsed()
    liveness.clock = lambda: now + 60

    assert liveness.holder() == holder and liveness.is_current(holder)


def test_a_command_that_no_wake_up_has_announced_ends_the_rest(desk, liveness, nothing_open, monkeypatch):
    monkeypatch.setattr("intents.execution.liveness.CHECK_SECONDS", 0.01)
    monkeypatch.setattr("intents.execution.liveness.REST_SECONDS", 0.1)
    stop, woken = threading.Event(), threading.Event()
    checking = threading.Thread(target=liveness.run, args=(stop, lambda: None, woken.set))
    checking.start()
    try:
        eventually(lambda: liveness.is_idle)
        desk.created(create("SIM.OPEN", "1"))
        assert woken.wait(60)
    finally:
        stop.set()
        checking.join()


@pytest.mark.parametrize(("lease_until", "absences"), [("NULL", 3), ("now()", 0)], ids=["answered", "left behind"])
def test_what_the_broker_did_not_have_before_a_run_that_never_answered_says_nothing(desk, lease_until, absences):
    """That run may have sent: an order is given up only after the broker has not had it several times since."""
    desk.created(create("SIM.OPEN", "1"))
    desk.execute(
        f"UPDATE intents.intent SET absences = 3, lease_until = {lease_until}, submit_started_at = now(), "
        "next_attempt_at = now() WHERE account_id = :account_id"
    )

    claimed = store.claim(desk.deps.connections.autocommit(), 1000, 60)

    assert [command.absences for command in claimed if command.account_id == desk.account_id] == [absences]
