"""The specification's table of outbox states, row by row, on the accounts outbox; and who learns of it."""

import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest
import redis
from sqlalchemy import text

from accounts import model
from chassis import db
from chassis.feed import Feed, FeedEvent
from chassis.outbox import Outbox
from chassis.outbox.relay import PRUNE_BATCH, Relay
from chassis.queues import Publisher
from tip_testing.outbox import age_claims, append, empty, every_event, make_due, rows, statuses
from tip_testing.platform_plugin import Platform

LIMIT = 4


@pytest.fixture
def outbox(platform: Platform) -> Iterator[Outbox]:
    with platform.admin() as admin:
        empty(admin, "accounts")
    engine = db.engine(platform.database_url("accounts"), pool_size=4, name="tests")
    yield Outbox(engine, "accounts", attempt_limit=LIMIT)
    engine.dispose()


@pytest.fixture
def publisher(platform: Platform) -> Iterator[Publisher]:
    publisher = Publisher(platform.redis_url)
    yield publisher
    publisher.close()


def _claimed(outbox: Outbox, batch: int = 100) -> list[int]:
    with outbox.engine.begin() as tx:
        return [row.id for row in outbox.claim(tx, batch).rows]


# | processing | claim query runs | row claimed more than five seconds ago and still unresolved | taken back |


@pytest.mark.parametrize(("age", "taken_back"), [(0, False), (4.5, False), (5.1, True), (60, True)])
def test_a_row_claimed_more_than_five_seconds_ago_is_taken_back_by_the_claim_query(
    outbox: Outbox, age: float, taken_back: bool
) -> None:
    ids = append(outbox, *model.EVENT_TYPES)
    assert _claimed(outbox) == ids

    age_claims(outbox, age)

    assert _claimed(outbox) == (ids if taken_back else [])


# | pending or processing | attempt count reaches the attempt limit | limit reached | failed |


def test_a_row_that_is_at_fault_every_time_fails_at_the_limit_and_not_before(
    outbox: Outbox, publisher: Publisher
) -> None:
    def at_fault(_row: object) -> None:
        raise ValueError("with a text that must not be kept")

    append(outbox, "credential.created")
    relay = Relay(outbox, publisher, {}, {"credential.created": at_fault})
    seen = []
    for _ in range(LIMIT + 3):
        relay.drain_once()
        make_due(outbox)
        seen.append((rows(outbox)[0].status, rows(outbox)[0].attempts))

    assert seen == [("pending", 1), ("pending", 2), ("pending", 3), *[("failed", 4)] * 4]
    assert rows(outbox)[0].last_error == "ValueError"


def test_a_row_whose_worker_vanishes_every_time_fails_at_the_limit(outbox: Outbox, publisher: Publisher) -> None:
    append(outbox, "account.created")
    seen = []
    for _ in range(LIMIT):
        _claimed(outbox)
        age_claims(outbox, 6)
        seen.append(rows(outbox)[0].status)
    Relay(outbox, publisher, {}).drain_once()

    assert seen == ["processing"] * LIMIT
    assert (rows(outbox)[0].status, rows(outbox)[0].attempts) == ("failed", LIMIT)


def test_failed_is_never_claimed_again(outbox: Outbox) -> None:
    append(outbox, "account.created")
    with outbox.engine.begin() as tx:
        tx.execute(text("UPDATE accounts.outbox SET status = 'failed', attempts = 1, claimed_at = now()"))
    age_claims(outbox, 600)
    make_due(outbox)

    with outbox.engine.begin() as tx:
        abandoned = outbox.fail_abandoned(tx)

    assert (_claimed(outbox), abandoned, statuses(outbox)) == ([], [], {"failed": 1})


@pytest.mark.parametrize("key", [None, "in one line"])
def test_a_row_that_kills_its_workers_fails_alone(outbox: Outbox, publisher: Publisher, key: str | None) -> None:
    """Claimed together, a hundred rows lose their worker because of one of them: only that one may fail for it."""
    ids = append(outbox, *["account.created"] * 40, key=key)
    poison = ids[20]
    relay = Relay(outbox, publisher, {})
    for _ in range(100):
        claim = relay._claim()
        if poison not in [row.id for row in claim.rows]:
            relay._complete(claim, list(claim.rows))
        age_claims(outbox, 6)  # a worker that had the poison is gone, and five seconds have passed
        relay._abandoned_at = 0.0

    assert {row.id: row.status for row in rows(outbox) if row.status != "completed"} == {poison: "failed"}
    assert max(row.attempts for row in rows(outbox) if row.id != poison) < LIMIT


def test_a_worker_that_comes_late_settles_nothing(outbox: Outbox) -> None:
    append(outbox, "account.created")
    with outbox.engine.begin() as tx:
        late = outbox.claim(tx)
    age_claims(outbox, 6)
    with outbox.engine.begin() as tx:
        outbox.claim(tx)
    before = rows(outbox)

    with outbox.engine.begin() as tx:
        ids = [row.id for row in late.rows]
        changed = (
            len(outbox.complete(tx, late, ids)),
            outbox.retry(tx, late, ids[0], "late"),
            outbox.release(tx, late, ids, delay=0, error="late"),
        )

    assert (changed, rows(outbox)) == ((0, None, 0), before)


# What is published


def test_all_events_reach_the_queues_they_are_routed_to_and_the_feed_in_order(
    outbox: Outbox, publisher: Publisher, platform: Platform
) -> None:
    queues = tuple(f"tip.test.{uuid4().hex}" for _ in range(3))
    ids = append(outbox, *model.EVENT_TYPES)

    Relay(outbox, publisher, every_event(*queues)).drain_once()

    with redis.Redis.from_url(platform.redis_url) as server:
        assert [server.llen(queue) for queue in queues] == [1, 1, 1]
    consumer = db.engine(platform.database_url("intents"), pool_size=1, name="tests")
    with consumer.connect() as tx:
        received = tx.execute(text("SELECT position, event_type FROM accounts_api.feed ORDER BY position")).all()
    consumer.dispose()
    assert [tuple(row) for row in received] == list(enumerate(model.EVENT_TYPES, start=1))
    assert [row.position for row in rows(outbox)] == list(range(1, len(ids) + 1))


def test_a_consumer_reads_every_event_once_although_every_message_was_lost(
    outbox: Outbox, publisher: Publisher, platform: Platform
) -> None:
    received: list[str] = []

    def note(_tx: object, event: FeedEvent) -> None:
        received.append(event.event_type)

    consumer = db.engine(platform.database_url("intents"), pool_size=1, name="tests")
    feed = Feed(consumer, "intents", "accounts")
    for event_type in model.EVENT_TYPES:
        append(outbox, event_type)
        Relay(outbox, publisher, {}).drain_once()
        feed.drain(note)
    feed.drain(note)
    consumer.dispose()

    assert received == list(model.EVENT_TYPES)


def test_completed_rows_are_pruned_by_age_however_many_there_are(outbox: Outbox, publisher: Publisher) -> None:
    old, young = 2 * PRUNE_BATCH + 500, 3
    with outbox.engine.begin() as tx:
        tx.execute(
            text("""INSERT INTO accounts.outbox (event_id, event_type, payload, status, position, settled_at)
                    SELECT gen_random_uuid(), 'account.created', '{}', 'completed', :first + i,
                           now() - make_interval(days => :days)
                    FROM generate_series(1, :count) i"""),
            [{"days": 8, "count": old, "first": 0}, {"days": 6, "count": young, "first": old}],
        )
        tx.execute(text("UPDATE accounts.outbox_head SET last_position = :n"), {"n": old + young})
        tx.execute(text("INSERT INTO accounts.outbox_completed VALUES ('account.created', 0, :n)"), {"n": old + young})
    relay = Relay(outbox, publisher, {}, keep_days=7)
    stop = threading.Event()
    thread = threading.Thread(target=relay.run, args=(stop,))
    thread.start()
    try:
        append(outbox, *["account.updated"] * 3)
        for _ in range(600):
            if statuses(outbox) == {"completed": young + 3}:
                break
            stop.wait(0.1)
    finally:
        stop.set()
        thread.join()

    assert statuses(outbox) == {"completed": young + 3}
    with outbox.engine.connect() as tx:
        assert {entry.event_type: entry.count for entry in outbox.health(tx)} == {
            "account.created": young,
            "account.updated": 3,
        }
