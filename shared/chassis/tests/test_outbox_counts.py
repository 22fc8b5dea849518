"""The counts of an outbox are those of its rows, whatever runs at once."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, text

from chassis.outbox import Event, Outbox
from tip_testing.outbox import append, claim, complete, wait_for_a_lock_waiter


def test_health_counts_are_those_of_the_rows(outbox: Outbox) -> None:
    outbox.attempt_limit = 1
    append(outbox, "a.created", "a.created", "a.updated", "a.deleted")
    with outbox.engine.begin() as tx:
        done = outbox.claim(tx, 2)
        outbox.complete(tx, done, [row.id for row in done.rows])
    failing = claim(outbox, 1)
    with outbox.engine.begin() as tx:
        outbox.retry(tx, failing, failing.rows[0].id, "ValueError")
    append(outbox, "a.created")
    claim(outbox, 1)

    assert counted(outbox) == naive(outbox)
    with outbox.engine.connect() as tx:
        claimed = [(entry.status, entry.event_type) for entry in outbox.health(tx) if entry.oldest_claimed_at]
    assert claimed == [("processing", "a.deleted")]


def counted(outbox: Outbox) -> dict[tuple[str, str], tuple[Any, ...]]:
    with outbox.engine.connect() as tx:
        return {
            (entry.status, entry.event_type): (entry.count, entry.oldest_created_at, entry.max_attempts)
            for entry in outbox.health(tx)
        }


def naive(outbox: Outbox) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The same, straight from the rows."""
    statement = "SELECT status, event_type, count(*), min(created_at), max(attempts) FROM identity.outbox GROUP BY 1, 2"
    with outbox.engine.connect() as tx:
        return {(row[0], row[1]): tuple(row[2:]) for row in tx.execute(text(statement))}


def test_health_counts_are_those_of_the_rows_whatever_runs_at_once(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.outbox.store.BACKLOG", 1)
    monkeypatch.setattr("chassis.outbox.store.COUNTED_AT_ONCE", 20)
    outbox.attempt_limit = 1_000
    began, times = time.monotonic(), [0] * 6

    def enough() -> bool:
        """Two seconds at full tilt, and on a busy machine as long as it takes for everybody to have had a share."""
        lasted = time.monotonic() - began
        return lasted > 60 or (lasted > 2 and min(times) > 10)

    def over_and_over(work: Callable[[Connection, random.Random], object], seed: int) -> None:
        chance = random.Random(seed)
        while not enough():
            with outbox.engine.begin() as tx:
                work(tx, chance)
            times[seed] += 1

    def publish(tx: Connection, chance: random.Random) -> None:
        for _ in range(chance.randrange(1, 12)):
            outbox.append(tx, Event(chance.choice(["a", "b", "c", "d", "e"]), {}))

    def work(tx: Connection, chance: random.Random) -> None:
        held = outbox.claim(tx, chance.randrange(1, 20))
        ids = [row.id for row in held.rows]
        part = chance.randrange(3)
        if part == 0:
            outbox.release(tx, held, ids, delay=0, error="down")
        elif part == 1:
            outbox.complete(tx, held, ids[::2])
            outbox.release(tx, held, ids[1::2], delay=0, error="down")
        else:
            outbox.complete(tx, held, ids)

    def tidy(tx: Connection, chance: random.Random) -> None:
        outbox.prune(tx, days=0, batch=chance.randrange(1, 10))

    def count(tx: Connection, _chance: random.Random) -> None:
        outbox.roll_up(tx)

    jobs = [publish, publish, work, work, tidy, count]
    with ThreadPoolExecutor(len(jobs)) as threads:
        for running in [threads.submit(over_and_over, job, seed) for seed, job in enumerate(jobs)]:
            running.result()  # raises what a thread raised: a deadlock, say

    assert min(times) > 10
    append(outbox, "a", "b", "c")
    complete(outbox, claim(outbox, 2))  # of what was completed before, all may have been pruned
    assert {status for status, _ in naive(outbox)} >= {"pending", "completed"}
    assert counted(outbox) == naive(outbox)


def test_counts_restored_from_another_cluster_are_counted_anew(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chassis.outbox.store.BACKLOG", 3)
    with outbox.engine.begin() as tx:
        tx.execute(text("UPDATE identity.outbox_head SET counted_below = 4000000000000"))
        tx.execute(text("INSERT INTO identity.outbox_backlog VALUES ('a.created', 7), ('b.created', 7)"))
    append(outbox, "a.created", "a.created")
    assert counted(outbox) != naive(outbox)

    seen = []
    for _ in range(3):
        with outbox.engine.begin() as tx:
            outbox.roll_up(tx)
        seen.append(counted(outbox) == naive(outbox))
        append(outbox, "a.created", "c.created")
        claim(outbox, 1)

    assert seen == [True, True, True]
    assert counted(outbox) == naive(outbox)
    with outbox.engine.connect() as tx:
        assert tx.execute(text("SELECT sum(count) FROM identity.outbox_backlog")).scalar_one() > 0


PATIENT = "SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '60s'"
# A plan that many rows would bring about: it comes to the counters in no order.
HASHED = text(
    f"{PATIENT}; SET LOCAL enable_nestloop = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_sort = off"
)


def _prune(outbox: Outbox) -> None:
    with outbox.engine.begin() as tx:
        tx.execute(HASHED)
        outbox.prune(tx, days=0)


def _claim(outbox: Outbox) -> None:
    with outbox.engine.begin() as tx:
        tx.execute(HASHED)
        outbox.claim(tx)


@pytest.mark.parametrize(("table", "action"), [("outbox_completed", _prune), ("outbox_backlog", _claim)])
def test_counters_are_locked_in_the_order_of_their_keys(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch, table: str, action: Callable[[Outbox], object]
) -> None:
    """Whoever waits for the first holds none of the others: so no two can wait for each other."""
    monkeypatch.setattr("chassis.outbox.store.BACKLOG", 1)
    for event_type in ("c", "b", "a"):  # and so they lie on their page
        append(outbox, event_type)
        with outbox.engine.begin() as tx:
            outbox.roll_up(tx)
        if table == "outbox_completed":
            complete(outbox, claim(outbox))
    lock = f"SELECT count FROM identity.{table} WHERE event_type = :type FOR UPDATE NOWAIT"

    with outbox.engine.begin() as tx:
        tx.execute(text(lock), {"type": "a"})
        thread = threading.Thread(target=action, args=(outbox,))
        thread.start()
        wait_for_a_lock_waiter(outbox)
        others = [tx.execute(text(lock), {"type": event_type}).scalar_one() for event_type in ("b", "c")]
    thread.join()

    assert others == [1, 1]
    assert counted(outbox) == naive(outbox)


def test_the_head_is_free_while_a_backlog_is_counted(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chassis.outbox.store.BACKLOG", 1)
    append(outbox, "a")
    with outbox.engine.begin() as tx:
        outbox.roll_up(tx)
    append(outbox, "a")

    def count() -> None:
        with outbox.engine.begin() as tx:
            tx.execute(text(PATIENT))
            outbox.roll_up(tx)

    with outbox.engine.begin() as tx:
        tx.execute(text("SELECT 1 FROM identity.outbox_backlog FOR UPDATE"))
        thread = threading.Thread(target=count)
        thread.start()
        wait_for_a_lock_waiter(outbox)  # in the middle of its counting
        free = tx.execute(text("SELECT true FROM identity.outbox_head FOR UPDATE NOWAIT")).scalar_one()
    thread.join()

    assert free
    assert counted(outbox) == naive(outbox)


def test_pruning_removes_old_completed_rows_only_and_the_counts_follow(outbox: Outbox) -> None:
    append(outbox, "a.created", "a.created", "a.updated")
    done = claim(outbox, 2)
    complete(outbox, done)
    with outbox.engine.begin() as tx:
        tx.execute(
            text("UPDATE identity.outbox SET settled_at = settled_at - interval '8 days' WHERE id <> :id"),
            {"id": done.rows[1].id},
        )

    with outbox.engine.begin() as tx:
        assert outbox.prune(tx, days=7) == 1
        report = {(entry.status, entry.event_type): entry.count for entry in outbox.health(tx)}

    assert report == {("completed", "a.created"): 1, ("pending", "a.updated"): 1}
