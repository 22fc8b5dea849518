"""Consuming another service's feed: delivered at least once, applied exactly once, whatever happens to the messages."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

import pytest
import redis
from sqlalchemy import Connection, Engine, text

from chassis import db, feed, queues, rest
from chassis.feed import Feed, FeedEvent
from chassis.outbox import Outbox
from tip_testing.outbox import append
from tip_testing.platform_plugin import Platform
from tip_testing.servers_plugin import ValkeyServer


@pytest.fixture
def consumer(platform: Platform, engine: Engine) -> Feed:
    """A consumer with its own tables; any schema will do, so it borrows the one under test."""
    with platform.admin() as admin:
        admin.execute(text("DROP SCHEMA IF EXISTS consumer CASCADE; CREATE SCHEMA consumer"))
        admin.execute(text(feed.create_v1("consumer")))
        admin.execute(text("CREATE TABLE consumer.applied (event_id uuid)"))
        admin.execute(text("GRANT USAGE ON SCHEMA consumer TO tip_identity"))
        admin.execute(text("GRANT ALL ON ALL TABLES IN SCHEMA consumer TO tip_identity"))
    return Feed(engine, "consumer", "identity")


def note(tx: Connection, event: FeedEvent) -> None:
    tx.execute(text("INSERT INTO consumer.applied VALUES (:event_id)"), {"event_id": event.event_id})


def applied(engine: Engine) -> int:
    with engine.connect() as tx:
        return int(tx.execute(text("SELECT count(*) FROM consumer.applied")).scalar_one())


def settle_all(outbox: Outbox) -> None:
    with outbox.engine.begin() as tx:
        held = outbox.claim(tx, 1000)
        outbox.complete(tx, held, [row.id for row in held.rows])


def test_events_published_while_the_consumer_was_down_are_applied_once(outbox: Outbox, consumer: Feed) -> None:
    append(outbox, *["a.created"] * 250)
    settle_all(outbox)

    assert consumer.drain(note) == 250
    assert consumer.drain(note) == 0
    assert applied(outbox.engine) == 250


def test_no_event_is_in_the_feed_before_its_relay_has_completed_it(outbox: Outbox, consumer: Feed) -> None:
    append(outbox, "a.created")

    assert consumer.drain(note) == 0


def test_a_consumer_with_nothing_to_consume_finds_out_without_a_lock(outbox: Outbox, consumer: Feed) -> None:
    def news() -> bool:
        return feed.has_news(outbox.engine, "consumer", ["identity"])

    assert not news()
    append(outbox, "a.created")
    assert not news()
    settle_all(outbox)
    with outbox.engine.begin() as another:
        consumer._locked_position(another)
        assert news()
    consumer.drain(note)
    assert not news()


def test_finding_out_that_there_is_nothing_to_consume_costs_the_same_however_much_was_consumed(
    outbox: Outbox, consumer: Feed, platform: Platform
) -> None:
    append(outbox, *["a.created"] * 500)
    for _ in range(5):
        settle_all(outbox)
    assert consumer.drain(note) == 500
    with platform.admin() as admin:
        admin.execute(text("ANALYZE identity.outbox"))
    rows_read = text("""
        SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables
        WHERE schemaname = 'identity' AND relname = 'outbox'
    """)

    with outbox.engine.begin() as tx:
        before = tx.execute(rows_read).scalar_one()
        assert not feed._has_unread(tx, "consumer", "identity")
        assert tx.execute(rows_read).scalar_one() - before < 10


def test_an_effect_that_fails_is_applied_again_and_not_twice(outbox: Outbox, consumer: Feed) -> None:
    append(outbox, *["a.created"] * 5)
    settle_all(outbox)
    seen: list[int] = []

    def fails_once(tx: Connection, event: FeedEvent) -> None:
        note(tx, event)
        seen.append(event.position)
        if len(seen) == 3:
            raise RuntimeError("killed here")

    with pytest.raises(RuntimeError):
        consumer.drain(fails_once)
    assert consumer.drain(fails_once) == 5
    assert (seen, applied(outbox.engine)) == ([1, 2, 3, 1, 2, 3, 4, 5], 5)


def test_a_consumer_far_behind_stops_when_requested_and_goes_on_where_it_stopped(
    outbox: Outbox, consumer: Feed
) -> None:
    append(outbox, *["a.created"] * 350)
    settle_all(outbox)
    stop = threading.Event()

    def request_stop(tx: Connection, event: FeedEvent) -> None:
        note(tx, event)
        if event.position > feed.BATCH:
            stop.set()

    assert consumer.drain(request_stop, stop) == 2 * feed.BATCH
    assert consumer.drain(note) == 350 - 2 * feed.BATCH
    assert applied(outbox.engine) == 350


def test_two_consumers_of_one_service_do_not_repeat_each_other(
    outbox: Outbox, consumer: Feed, platform: Platform
) -> None:
    append(outbox, *["a.created"] * 300)
    settle_all(outbox)
    other = db.engine(platform.database_url("identity"), pool_size=2, name="other")
    threads = [
        threading.Thread(target=Feed(engine, "consumer", "identity").drain, args=(note,))
        for engine in (outbox.engine, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.dispose()

    assert applied(outbox.engine) == 300


class Calls:
    """What `queues.listen` is given to call: counts, and says so."""

    def __init__(self) -> None:
        self.made = threading.Semaphore(0)

    def __call__(self) -> None:
        self.made.release()

    def wait_for(self, count: int, seconds: float = 60.0) -> bool:
        deadline = time.monotonic() + seconds
        return all(self.made.acquire(timeout=max(0.0, deadline - time.monotonic())) for _ in range(count))


@contextmanager
def listening(url: str, work: Callable[[], object], follow_up: Sequence[float] = ()) -> Iterator[str]:
    """A thread that listens to a queue of its own; a last message ends its wait."""
    queue, stop, publisher = f"tip.test.{uuid4().hex}", threading.Event(), queues.Publisher(url)
    thread = threading.Thread(
        target=queues.listen, args=(url, queue, work, stop), kwargs={"follow_up": follow_up}, daemon=True
    )
    thread.start()
    try:
        yield queue
    finally:
        stop.set()
        publisher.publish(queue, {})
        publisher.close()
        thread.join()


def publish(url: str, queue: str) -> None:
    publisher = queues.Publisher(url)
    publisher.publish(queue, {"events": []})
    publisher.close()


def test_without_a_message_the_consumer_polls(valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "FIRST_S", 0.01)
    calls = Calls()

    with listening(valkey_server.url, calls):
        assert calls.wait_for(5)


@pytest.mark.parametrize("follow_up", [(), (0.001, 0.001)], ids=["once", "with_follow_ups"])
def test_a_message_wakes_the_consumer_without_waiting_for_the_poll(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch, follow_up: tuple[float, ...]
) -> None:
    monkeypatch.setattr(rest, "FIRST_S", 600.0)
    calls = Calls()

    with listening(valkey_server.url, calls, follow_up) as queue:
        assert calls.wait_for(1)  # what was there before
        publish(valkey_server.url, queue)
        assert calls.wait_for(1 + len(follow_up))
        assert not calls.wait_for(1, seconds=0.3)


def test_a_consumer_polls_on_while_the_queue_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "OUTAGE_POLL_S", 0.01)
    stop, calls = threading.Event(), []

    def work() -> None:
        calls.append(1)
        if len(calls) == 2:
            stop.set()

    queues.listen("redis://127.0.0.1:1/0", "tip.test", work, stop)

    assert len(calls) == 2


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
    assert 100 <= waiting < 100 + queues.CHECK_EVERY
