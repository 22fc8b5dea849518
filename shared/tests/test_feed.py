"""Hearing another service: told at least once, done exactly once, whatever happens to the messages."""

import threading
import time
from uuid import uuid4

import pytest
import redis
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import ProgrammingError

from chassis import db, feed, queues
from chassis.feed import Feed, Told
from chassis.outbox import Outbox
from tip_local.outbox_kit import append
from tip_local.platform_plugin import Platform
from tip_local.pytest_plugin import ValkeyServer


@pytest.fixture
def listener(fresh_platform: Platform, engine: Engine) -> Feed:
    """A listener with its own tables; any schema will do, so it borrows the one under test."""
    with fresh_platform.admin() as admin:
        admin.execute(text("CREATE SCHEMA listener"))
        admin.execute(text(feed.create_v1("listener")))
        admin.execute(text("CREATE TABLE listener.heard (event_id uuid)"))
        admin.execute(text("GRANT USAGE ON SCHEMA listener TO tip_identity"))
        admin.execute(text("GRANT ALL ON ALL TABLES IN SCHEMA listener TO tip_identity"))
    return Feed(engine, "listener", "identity")


def note(tx: Connection, event: Told) -> None:
    tx.execute(text("INSERT INTO listener.heard VALUES (:event_id)"), {"event_id": event.event_id})


def heard(engine: Engine) -> int:
    with engine.connect() as tx:
        return int(tx.execute(text("SELECT count(*) FROM listener.heard")).scalar_one())


def settle_all(outbox: Outbox) -> None:
    with outbox.engine.begin() as tx:
        held = outbox.claim(tx, 1000)
        outbox.complete(tx, held, [row.id for row in held.rows])


def test_what_was_told_while_the_listener_was_down_is_heard_once(outbox: Outbox, listener: Feed) -> None:
    append(outbox, *["a.created"] * 250)
    settle_all(outbox)

    assert listener.catch_up(note) == 250
    assert listener.catch_up(note) == 0
    assert heard(outbox.engine) == 250


def test_nothing_is_heard_before_its_owner_has_finished_with_it(outbox: Outbox, listener: Feed) -> None:
    append(outbox, "a.created")

    assert listener.catch_up(note) == 0


def test_an_effect_that_fails_is_done_again_and_not_twice(outbox: Outbox, listener: Feed) -> None:
    append(outbox, *["a.created"] * 5)
    settle_all(outbox)
    seen: list[int] = []

    def fails_once(tx: Connection, event: Told) -> None:
        note(tx, event)
        seen.append(event.position)
        if len(seen) == 3:
            raise RuntimeError("killed here")

    with pytest.raises(RuntimeError):
        listener.catch_up(fails_once)
    assert listener.catch_up(fails_once) == 5
    assert (seen, heard(outbox.engine)) == ([1, 2, 3, 1, 2, 3, 4, 5], 5)


def test_a_listener_far_behind_stops_when_asked_and_goes_on_where_it_stopped(outbox: Outbox, listener: Feed) -> None:
    append(outbox, *["a.created"] * 350)
    settle_all(outbox)
    stop = threading.Event()

    def asked_to_stop(tx: Connection, event: Told) -> None:
        note(tx, event)
        if event.position > feed.BATCH:
            stop.set()

    assert listener.catch_up(asked_to_stop, stop) == 2 * feed.BATCH
    assert listener.catch_up(note) == 350 - 2 * feed.BATCH
    assert heard(outbox.engine) == 350


def test_a_listener_bears_a_database_out_of_reach_and_nothing_else(listener: Feed) -> None:
    nowhere = db.engine("postgresql://nobody@127.0.0.1:1/none", pool_size=1, name="nowhere")
    Feed(nowhere, "listener", "identity").hear(note, threading.Event())
    nowhere.dispose()

    with pytest.raises(ProgrammingError):
        Feed(listener.engine, "listener", "nobody").hear(note, threading.Event())


def test_two_listeners_of_one_service_do_not_repeat_each_other(
    outbox: Outbox, listener: Feed, fresh_platform: Platform
) -> None:
    append(outbox, *["a.created"] * 300)
    settle_all(outbox)
    other = db.engine(fresh_platform.database_url("identity"), pool_size=2, name="other")
    threads = [
        threading.Thread(target=Feed(engine, "listener", "identity").catch_up, args=(note,))
        for engine in (outbox.engine, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.dispose()

    assert heard(outbox.engine) == 300


def test_a_message_wakes_the_listener_and_without_any_it_looks_by_itself(valkey_server: ValkeyServer) -> None:
    queue, stop, calls = f"tip.test.{uuid4().hex}", threading.Event(), []
    deadline = time.monotonic() + 30

    def work(messages: object) -> None:
        calls.append((time.monotonic(), bool(messages)))

    thread = threading.Thread(target=queues.listen, args=(valkey_server.url, queue, work, stop))
    thread.start()
    try:
        while len(calls) < 2:  # by itself, once in a second
            time.sleep(0.02)
            assert time.monotonic() < deadline
        publisher = queues.Publisher(valkey_server.url)
        sent = time.monotonic()
        publisher.publish(queue, {"events": []})
        while not any(woken for _, woken in calls):
            time.sleep(0.005)
            assert time.monotonic() - sent < 5
        publisher.close()
    finally:
        stop.set()
        thread.join()

    assert next(moment for moment, woken in calls if woken) - sent < 0.9


def test_a_listener_works_on_while_the_queue_is_down() -> None:
    stop, calls = threading.Event(), []

    def work(messages: object) -> None:
        calls.append(messages)
        if len(calls) == 2:
            stop.set()

    queues.listen("redis://127.0.0.1:1/0", "tip.test", work, stop)

    assert calls == [[], []]


def test_a_queue_that_nobody_empties_stops_growing(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "LONGEST_QUEUE", 100)
    queue = f"tip.test.{uuid4().hex}"
    publisher = queues.Publisher(valkey_server.url)
    for _ in range(400):
        publisher.publish(queue, {"events": []})
    publisher.close()

    server = redis.Redis.from_url(valkey_server.url)
    waiting = int(server.llen(queue))
    server.close()
    assert 100 <= waiting < 100 + queues.LOOK_EVERY
