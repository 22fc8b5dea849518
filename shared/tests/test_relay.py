"""The relay: rows become messages, faults are told from outages, neighbours do not suffer."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest

from chassis import queues
from chassis.outbox import Event, Outbox, Row
from chassis.outbox.relay import Relay
from chassis.queues import Outage, Publisher
from tip_local.outbox_kit import append, make_due, rows, statuses
from tip_local.pytest_plugin import ValkeyServer


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
    relay = Relay(outbox, publisher, (queue,), batch=10)

    assert [relay.drain_once() for _ in range(4)] == [10, 10, 5, 0]

    assert statuses(outbox) == {"completed": 25}
    assert heard(valkey_server.url, queue) == [str(row.event_id) for row in rows(outbox)]


def test_a_row_that_fails_does_not_stop_its_neighbours(outbox: Outbox, publisher: Publisher, queue: str) -> None:
    def refuse(_row: Row) -> None:
        raise ValueError("a secret that must not be stored")

    append(outbox, "good.created", "bad.created", "good.created")
    relay = Relay(outbox, publisher, (queue,), {"bad.created": refuse})
    for _ in range(outbox.attempt_limit):
        relay.drain_once()
        make_due(outbox)

    assert statuses(outbox) == {"completed": 2, "failed": 1}
    assert [row.last_error for row in rows(outbox) if row.status == "failed"] == ["ValueError"]


def test_an_outage_of_what_a_handler_needs_burns_no_attempts(outbox: Outbox, publisher: Publisher, queue: str) -> None:
    def unreachable(_row: Row) -> None:
        raise Outage("vault")

    append(outbox, "a.created", "a.created")
    relay = Relay(outbox, publisher, (queue,), {"a.created": unreachable})
    for _ in range(outbox.attempt_limit * 2):
        relay.drain_once()
        make_due(outbox)

    assert [(row.status, row.attempts) for row in rows(outbox)] == [("pending", 0)] * 2


def test_a_queue_that_is_down_burns_no_attempts_and_loses_nothing(
    outbox: Outbox, publisher: Publisher, queue: str, valkey_server: ValkeyServer
) -> None:
    append(outbox, "a.created")
    nowhere = Relay(outbox, Publisher("redis://127.0.0.1:1/0"), (queue,))
    for _ in range(outbox.attempt_limit + 1):
        assert nowhere.drain_once() == 1
        make_due(outbox)
    assert [(row.status, row.attempts) for row in rows(outbox)] == [("pending", 0)]

    assert Relay(outbox, publisher, (queue,)).drain_once() == 1
    assert len(heard(valkey_server.url, queue)) == 1


def test_what_cannot_be_done_before_the_claim_runs_out_is_given_back(
    outbox: Outbox, publisher: Publisher, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.outbox.relay.WORK_BUDGET_S", 0.05)
    append(outbox, *["slow.created"] * 3)

    Relay(outbox, publisher, (queue,), {"slow.created": lambda _row: time.sleep(0.06)}).drain_once()

    assert [(row.status, row.attempts) for row in rows(outbox)] == [("completed", 1), ("pending", 0), ("pending", 0)]


def test_a_committed_event_is_delivered_without_waiting_for_the_sweep(
    outbox: Outbox, publisher: Publisher, queue: str
) -> None:
    stop = threading.Event()
    relay = threading.Thread(target=Relay(outbox, publisher, (queue,)).run, args=(stop,))
    relay.start()
    try:
        time.sleep(1.2)  # the relay has listened and is resting
        waits = [_seconds_to_completion(outbox) for _ in range(5)]
    finally:
        stop.set()
        relay.join()

    assert sorted(waits)[2] < 0.5  # a sweep alone would take half a second on average and up to a whole one


def _seconds_to_completion(outbox: Outbox) -> float:
    started = time.perf_counter()
    with outbox.begin() as tx:
        outbox.append(tx, Event("a.created", {}))
    while statuses(outbox).keys() != {"completed"}:
        time.sleep(0.005)
        assert time.perf_counter() - started < 10
    return time.perf_counter() - started
