"""The relay: rows become messages, faults differ from outages, neighbours do not suffer."""

import socket
import threading
import time
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
import redis
from sqlalchemy import text

from chassis import queues
from chassis.outbox import CLAIM_SECONDS, Event, Outbox, Row
from chassis.outbox.relay import Relay
from chassis.queues import Outage, Publisher
from tip_testing.outbox import append, every_event, make_due, rows, statuses
from tip_testing.servers_plugin import ValkeyServer
from tip_testing.waiting import eventually


def received(url: str, queue: str) -> list[str]:
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


def test_every_row_is_published_once_and_completed(
    outbox: Outbox, publisher: Publisher, queue: str, valkey_server: ValkeyServer
) -> None:
    append(outbox, *["a.created"] * 25)
    relay = Relay(outbox, publisher, every_event(queue), batch=10)

    assert [relay.drain_once() for _ in range(4)] == [10, 10, 5, 0]

    assert statuses(outbox) == {"completed": 25}
    assert received(valkey_server.url, queue) == [str(row.event_id) for row in rows(outbox)]


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
    assert len(received(valkey_server.url, queue)) == 1


def test_a_queue_that_accepts_and_never_answers_is_given_up_within_the_claim(queue: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        publisher = Publisher(f"redis://127.0.0.1:{mute.getsockname()[1]}/0")
        for _ in range(2):
            began = time.perf_counter()
            with pytest.raises(Outage):
                publisher.publish(queue, {})
            assert time.perf_counter() - began < CLAIM_SECONDS


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


def test_a_queue_gets_the_events_routed_to_it_and_no_empty_message(
    outbox: Outbox, publisher: Publisher, valkey_server: ValkeyServer
) -> None:
    some, none, every = (f"tip.test.{uuid4().hex}" for _ in range(3))
    append(outbox, "a.created", "b.created", "a.deleted")

    routes = {some: ("a.created", "a.deleted"), none: ("c.created",), **every_event(every)}
    Relay(outbox, publisher, routes).drain_once()

    ids = [str(row.event_id) for row in rows(outbox)]
    assert received(valkey_server.url, some) == [ids[0], ids[2]]
    assert received(valkey_server.url, every) == ids
    with redis.Redis.from_url(valkey_server.url) as server:
        assert server.llen(none) == 0


def test_a_committed_event_is_delivered_without_waiting_for_the_poll(
    outbox: Outbox, publisher: Publisher, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.rest.FIRST_S", 600.0)
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


def test_a_steady_trickle_of_rows_is_delivered_in_few_batches(outbox: Outbox, publisher: Publisher, queue: str) -> None:
    relay, stop = Relay(outbox, publisher, every_event(queue), pace_s=1.0), threading.Event()
    thread = threading.Thread(target=relay.run, args=(stop,))
    thread.start()
    append(outbox, "a.created")
    eventually(lambda: statuses(outbox) == {"completed": 1})
    for _ in range(5):
        append(outbox, "a.created")
        time.sleep(0.02)

    eventually(lambda: statuses(outbox) == {"completed": 6})
    stop.set()
    thread.join()

    assert len({row.settled_at for row in rows(outbox)}) == 2


def polls_within(relay: Relay, seconds: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a relay that nobody wakes polls in this time, if it may rest for long."""
    monkeypatch.setattr("chassis.rest.FIRST_S", 0.05)
    monkeypatch.setattr("chassis.rest.LONGEST_S", 600.0)
    polls, stop = [], threading.Event()
    drain_once = relay.drain_once
    monkeypatch.setattr(relay, "drain_once", lambda: polls.append(1) or drain_once())
    running = threading.Thread(target=relay.run, args=(stop,))
    running.start()
    time.sleep(seconds)
    stop.set()
    running.join()
    return len(polls)


def test_a_relay_without_an_open_row_polls_more_and_more_rarely(
    outbox: Outbox, publisher: Publisher, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert polls_within(Relay(outbox, publisher, every_event(queue)), 2.0, monkeypatch) <= 8


def test_a_relay_polls_on_while_a_row_is_in_the_hands_of_another(
    outbox: Outbox, publisher: Publisher, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with outbox.begin() as tx:
        outbox.append(tx, Event("a.created", {}))
    with outbox.engine.begin() as tx:
        outbox.claim(tx)

    assert polls_within(Relay(outbox, publisher, every_event(queue)), 2.0, monkeypatch) > 15
