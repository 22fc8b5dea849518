"""The relay: rows become messages, faults are told from outages, neighbours do not suffer."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
import redis
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from chassis import metrics, queues
from chassis.outbox import CLAIM_SECONDS, Claim, Event, Outbox, Row
from chassis.outbox.relay import Relay
from chassis.queues import Outage, Publisher
from tip_testing.outbox import age_claims, append, every_event, make_due, rows, statuses
from tip_testing.servers_plugin import ValkeyServer


@pytest.fixture
def queue() -> str:
    return f"tip.test.{uuid4().hex}"


@pytest.fixture
def publisher(valkey_server: ValkeyServer) -> Iterator[Publisher]:
    publisher = Publisher(valkey_server.url)
    yield publisher
    publisher.close()


def heard(url: str, queue: str) -> list[str]:
    """Every event id waiting in the queue."""
    ids: list[str] = []
    with queues.connection(url) as opened:
        waiting = opened.SimpleQueue(queue)
        with suppress(waiting.Empty):
            while message := waiting.get(timeout=0.5):
                ids += [event["event_id"] for event in message.payload["events"]]
                message.ack()
        waiting.close()
    return ids


def test_every_row_is_told_once_and_completed(
    outbox: Outbox, publisher: Publisher, queue: str, valkey_server: ValkeyServer
) -> None:
    append(outbox, *["a.created"] * 25)
    relay = Relay(outbox, publisher, every_event(queue), batch=10)

    assert [relay.drain_once() for _ in range(4)] == [10, 10, 5, 0]

    assert statuses(outbox) == {"completed": 25}
    assert heard(valkey_server.url, queue) == [str(row.event_id) for row in rows(outbox)]


def test_a_row_that_fails_does_not_stop_its_neighbours(outbox: Outbox, publisher: Publisher, queue: str) -> None:
    def refuse(_row: Row) -> None:
        raise ValueError("a secret that must not be stored")

    append(outbox, "good.created", "bad.created", "good.created")
    relay = Relay(outbox, publisher, every_event(queue), {"bad.created": refuse})
    for _ in range(outbox.attempt_limit):
        relay.drain_once()
        make_due(outbox)

    assert statuses(outbox) == {"completed": 2, "failed": 1}
    assert [row.last_error for row in rows(outbox) if row.status == "failed"] == ["ValueError"]


@pytest.mark.parametrize("trouble", [ValueError("its own"), Outage("vault")])
def test_what_comes_behind_a_row_that_is_not_done_waits_for_it_and_nothing_else_does(
    outbox: Outbox, publisher: Publisher, queue: str, trouble: Exception
) -> None:
    well: list[bool] = []

    def troubled(_row: Row) -> None:
        if not well:
            raise trouble

    first, *behind = append(outbox, "a.created", "b.updated", "a.deleted", key="account-1")
    [other] = append(outbox, "b.created", key="account-2")
    relay = Relay(outbox, publisher, every_event(queue), {"a.created": troubled})
    relay.drain_once()
    seen = {row.id: (row.status, row.attempts) for row in rows(outbox)}
    well.append(True)
    while "pending" in statuses(outbox):
        make_due(outbox)
        relay.drain_once()

    burnt = 1 if isinstance(trouble, ValueError) else 0
    assert seen == {first: ("pending", burnt), **dict.fromkeys(behind, ("pending", 0)), other: ("completed", 1)}
    assert [row.position for row in rows(outbox)] == [2, 3, 4, 1]


def test_many_rows_of_one_key_are_delivered_by_the_batch(outbox: Outbox, publisher: Publisher, queue: str) -> None:
    append(outbox, *["a.updated"] * 25, key="account-1")
    relay = Relay(outbox, publisher, every_event(queue), batch=10)

    assert [relay.drain_once() for _ in range(4)] == [10, 10, 5, 0]


def test_an_outage_of_what_a_handler_needs_burns_no_attempts(outbox: Outbox, publisher: Publisher, queue: str) -> None:
    def unreachable(_row: Row) -> None:
        raise Outage("vault")

    append(outbox, "a.created", "a.created")
    relay = Relay(outbox, publisher, every_event(queue), {"a.created": unreachable})
    for _ in range(outbox.attempt_limit * 2):
        relay.drain_once()
        make_due(outbox)

    assert [(row.status, row.attempts) for row in rows(outbox)] == [("pending", 0)] * 2


def test_a_queue_that_is_down_burns_no_attempts_and_loses_nothing(
    outbox: Outbox, publisher: Publisher, queue: str, valkey_server: ValkeyServer
) -> None:
    append(outbox, "a.created")
    nowhere = Relay(outbox, Publisher("redis://127.0.0.1:1/0"), every_event(queue))
    for _ in range(outbox.attempt_limit + 1):
        assert nowhere.drain_once() == 1
        make_due(outbox)
    assert [(row.status, row.attempts) for row in rows(outbox)] == [("pending", 0)]

    assert Relay(outbox, publisher, every_event(queue)).drain_once() == 1
    assert len(heard(valkey_server.url, queue)) == 1


def test_a_queue_that_accepts_and_never_answers_is_given_up_within_the_claim(queue: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        publisher = Publisher(f"redis://127.0.0.1:{mute.getsockname()[1]}/0")
        for _ in range(2):
            began = time.perf_counter()
            with pytest.raises(Outage):
                publisher.publish(queue, {})
            assert time.perf_counter() - began < CLAIM_SECONDS


def settled(event_type: str, result: str) -> float:
    return float(metrics.OUTBOX_SETTLED.labels("identity", event_type, result)._value.get())


def test_rows_lost_to_another_relay_are_not_counted_as_completed(
    outbox: Outbox, publisher: Publisher, queue: str
) -> None:
    kind = f"lost.{uuid4().hex}"
    append(outbox, kind, kind)
    relay = Relay(outbox, publisher, every_event(queue))
    late = relay._claim()
    age_claims(outbox, 6)
    current = relay._claim()

    relay._complete(late, list(late.rows))
    relay._complete(current, list(current.rows))

    assert (settled(kind, "lost"), settled(kind, "completed")) == (2, 2)


class Unlucky(Outbox):
    """An outbox whose database fails the next so many completions."""

    unlucky = 0

    def complete(self, tx: Any, claim: Claim, ids: Any) -> frozenset[int]:
        if self.unlucky:
            self.unlucky -= 1
            tx.execute(text("SET LOCAL statement_timeout = 1; SELECT pg_sleep(1)"))
        return super().complete(tx, claim, ids)


@pytest.mark.parametrize(("failures", "now"), [(1, ("completed", 1)), (2, ("pending", 0))])
def test_what_was_told_and_could_not_be_settled_is_settled_again_or_keeps_its_attempt(
    outbox: Outbox, publisher: Publisher, queue: str, failures: int, now: tuple[str, int]
) -> None:
    unlucky = Unlucky(outbox.engine, outbox.schema, attempt_limit=1)
    unlucky.unlucky = failures
    append(outbox, "a.created")

    with suppress(OperationalError):
        Relay(unlucky, publisher, every_event(queue)).drain_once()

    assert [(row.status, row.attempts) for row in rows(outbox)] == [now]


def test_maintenance_that_fails_does_not_hold_up_delivery(
    outbox: Outbox, publisher: Publisher, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def fail(self: Outbox, tx: Any, **_options: Any) -> int:
        tried.append(time.monotonic())
        tx.execute(text("SET LOCAL statement_timeout = 1; SELECT pg_sleep(1)"))
        return 0

    monkeypatch.setattr(Outbox, "prune", fail)
    append(outbox, *["a.created"] * 40)
    stop = threading.Event()
    relay = threading.Thread(target=Relay(outbox, publisher, every_event(queue), batch=1).run, args=(stop,))
    began = time.monotonic()
    relay.start()
    try:
        while statuses(outbox) != {"completed": 40} and time.monotonic() - began < 50:
            time.sleep(0.05)
    finally:
        stop.set()
        relay.join()

    assert statuses(outbox) == {"completed": 40}
    assert len(tried) == 1  # and not again for every batch, with a rest after each


@pytest.mark.parametrize("trouble", ["a fault", "a lost worker"])
def test_whoever_cares_is_told_of_a_row_that_failed_by_a_fault_or_a_lost_worker(
    outbox: Outbox, publisher: Publisher, queue: str, trouble: str
) -> None:
    def refuse(_row: Row) -> None:
        raise ValueError

    heard: list[str] = []
    outbox.attempt_limit = 1
    relay = Relay(
        outbox,
        publisher,
        every_event(queue),
        {"a.created": refuse},
        {"a.created": lambda _tx, payload: heard.append(payload["event_id"])},
    )
    append(outbox, "a.created")
    if trouble == "a lost worker":
        relay._claim()
        age_claims(outbox, 6)
        relay._abandoned_at = 0.0
    relay.drain_once()

    assert statuses(outbox) == {"failed": 1}
    assert heard == [str(row.event_id) for row in rows(outbox)]


def test_a_failure_that_cannot_be_told_leaves_the_row_failed(outbox: Outbox, publisher: Publisher, queue: str) -> None:
    def refuse(_row: Row) -> None:
        raise ValueError

    def broken(tx: Any, _payload: Any) -> None:
        tx.execute(text("SELECT 1 / 0"))

    outbox.attempt_limit = 1
    append(outbox, "a.created", "b.created")

    Relay(outbox, publisher, every_event(queue), {"a.created": refuse}, {"a.created": broken}).drain_once()

    assert statuses(outbox) == {"failed": 1, "completed": 1}


def test_what_cannot_be_done_before_the_claim_runs_out_is_given_back(
    outbox: Outbox, publisher: Publisher, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.outbox.relay.WORK_BUDGET_S", 0.3)
    append(outbox, *["slow.created"] * 3)

    Relay(outbox, publisher, every_event(queue), {"slow.created": lambda _row: time.sleep(0.4)}).drain_once()

    assert [(row.status, row.attempts) for row in rows(outbox)] == [("completed", 1), ("pending", 0), ("pending", 0)]


def test_a_queue_gets_the_events_routed_to_it_and_no_empty_message(
    outbox: Outbox, publisher: Publisher, valkey_server: ValkeyServer
) -> None:
    some, none, every = (f"tip.test.{uuid4().hex}" for _ in range(3))
    append(outbox, "a.created", "b.created", "a.deleted")

    routes = {some: ("a.created", "a.deleted"), none: ("c.created",), **every_event(every)}
    Relay(outbox, publisher, routes).drain_once()

    ids = [str(row.event_id) for row in rows(outbox)]
    assert heard(valkey_server.url, some) == [ids[0], ids[2]]
    assert heard(valkey_server.url, every) == ids
    with redis.Redis.from_url(valkey_server.url) as server:
        assert server.llen(none) == 0


def test_a_committed_event_is_delivered_without_waiting_for_the_poll(
    outbox: Outbox, publisher: Publisher, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.outbox.relay.POLL_S", 600.0)
    stop = threading.Event()
    relay = threading.Thread(target=Relay(outbox, publisher, every_event(queue)).run, args=(stop,))
    relay.start()
    try:
        for _ in range(3):
            with outbox.begin() as tx:
                outbox.append(tx, Event("a.created", {}))
            _until_completed(outbox)
    finally:
        stop.set()
        outbox.notifier.notify()
        relay.join()

    assert statuses(outbox) == {"completed": 3}


def _until_completed(outbox: Outbox) -> None:
    deadline = time.monotonic() + 60
    while statuses(outbox).keys() != {"completed"}:
        assert time.monotonic() < deadline, "nobody was woken"
        time.sleep(0.01)
