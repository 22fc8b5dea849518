"""The outbox engine: what may be claimed, who may settle it, when a row is failed, and that all of it is counted."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from chassis.outbox import CLAIM_SECONDS, Event, Outbox
from tip_testing.outbox import age_claims, append, claim, complete, make_due, rows, statuses, wait_for_a_lock_waiter


def test_a_rolled_back_use_case_leaves_no_event(outbox: Outbox) -> None:
    with suppress(ZeroDivisionError), outbox.begin() as tx:
        outbox.append(tx, Event("a.created", {}))
        _ = 1 / 0

    assert rows(outbox) == []


def test_claiming_takes_the_oldest_first_and_counts_the_attempt(outbox: Outbox) -> None:
    ids = append(outbox, "a.created", "a.updated", "a.deleted")

    held = claim(outbox, batch=2)

    assert [row.id for row in held.rows] == ids[:2]
    assert [(row.status, row.attempts, row.claimed_at is not None) for row in rows(outbox)] == [
        ("processing", 1, True),
        ("processing", 1, True),
        ("pending", 0, False),
    ]


def test_two_claims_never_hold_the_same_row(outbox: Outbox) -> None:
    append(outbox, *["a.created"] * 10)

    first, second = claim(outbox, 6), claim(outbox, 6)

    assert not {row.id for row in first.rows} & {row.id for row in second.rows}
    assert len(first.rows) + len(second.rows) == 10


def test_a_claim_is_taken_back_after_five_seconds_and_not_before(outbox: Outbox) -> None:
    append(outbox, "a.created")
    claim(outbox)
    age_claims(outbox, CLAIM_SECONDS - 1)
    assert claim(outbox).rows == ()

    age_claims(outbox, 1.1)
    [row] = claim(outbox).rows

    assert (CLAIM_SECONDS, row.attempts) == (5, 2)


def test_a_late_worker_changes_nothing(outbox: Outbox) -> None:
    append(outbox, "a.created")
    late = claim(outbox)
    age_claims(outbox, 6)
    current = claim(outbox)

    assert complete(outbox, late) == []
    with outbox.engine.begin() as tx:
        assert outbox.retry(tx, late, late.rows[0].id, "Late") is None
        assert outbox.release(tx, late, [late.rows[0].id], delay=0, error="late") == 0
    assert statuses(outbox) == {"processing": 1}
    assert complete(outbox, current) == [current.rows[0].id]


def test_rows_of_one_key_are_claimed_together_and_by_nobody_else_meanwhile(outbox: Outbox) -> None:
    first, second, third = append(outbox, "a.created", "a.updated", "a.deleted", key="account-1")
    [other] = append(outbox, "a.created", key="account-2")

    held = claim(outbox, 2)
    assert [row.id for row in held.rows] == [first, second]
    assert [row.id for row in claim(outbox).rows] == [other]

    complete(outbox, held)
    assert [row.id for row in claim(outbox).rows] == [third]


def test_rows_behind_one_that_somebody_else_is_just_claiming_are_left_to_the_next_claim(outbox: Outbox) -> None:
    append(outbox, *["a.updated"] * 6, key="account-1")
    [other] = append(outbox, "a.created")
    with outbox.engine.begin() as first, outbox.engine.begin() as second:
        ours, theirs = outbox.claim(first, 2), outbox.claim(second)

    assert (len(ours.rows), [row.id for row in theirs.rows]) == (2, [other])


def test_rows_behind_one_that_waits_for_its_next_attempt_wait_too(outbox: Outbox) -> None:
    ids = append(outbox, *["a.updated"] * 4, key="account-1")
    held = claim(outbox, 2)
    with outbox.engine.begin() as tx:
        outbox.retry(tx, held, ids[0], "ValueError")
        outbox.release(tx, held, [ids[1]], delay=0, error="behind_another")
    assert claim(outbox).rows == ()

    with outbox.engine.begin() as tx:  # its time has come, later than that of all behind it
        tx.execute(
            text("UPDATE identity.outbox SET available_at = now() - interval '1 ms' WHERE id = :id"), {"id": ids[0]}
        )
    taken = []
    for _ in range(3):
        held = claim(outbox)
        complete(outbox, held)
        taken.append([row.id for row in held.rows])

    assert taken == [ids[:1], ids[1:2], ids[2:]]


def test_rows_of_one_key_whose_worker_vanished_are_taken_back_in_their_order(outbox: Outbox) -> None:
    ids = append(outbox, *["a.updated"] * 6, key="account-1")
    claim(outbox, 4)
    age_claims(outbox, 6)

    first = claim(outbox, 3)
    second = claim(outbox, 3)

    assert ([row.id for row in first.rows], second.rows) == (ids[:3], ())
    complete(outbox, first)
    assert [row.id for row in claim(outbox).rows] == [ids[3]]


def test_a_rows_own_fault_is_retried_with_growing_delay_and_fails_at_the_limit(outbox: Outbox) -> None:
    append(outbox, "a.created")
    seen, delays = [], []
    for _ in range(outbox.attempt_limit):
        make_due(outbox)
        held = claim(outbox)
        with outbox.engine.begin() as tx:
            seen.append(outbox.retry(tx, held, held.rows[0].id, "ValueError"))
            delays.append(
                tx.execute(text("SELECT extract(epoch FROM available_at - now()) FROM identity.outbox")).scalar_one()
            )

    assert seen == ["pending", "pending", "failed"]
    assert [float(delay) for delay in delays] == [2, 4, 8]
    assert [row.last_error for row in rows(outbox)] == ["ValueError"]


def test_failed_is_terminal(outbox: Outbox) -> None:
    outbox.attempt_limit = 1
    append(outbox, "a.created")
    held = claim(outbox)
    with outbox.engine.begin() as tx:
        outbox.retry(tx, held, held.rows[0].id, "ValueError")
    make_due(outbox)
    age_claims(outbox, 3600)

    assert claim(outbox).rows == ()
    assert statuses(outbox) == {"failed": 1}


def test_a_row_whose_worker_died_on_its_last_attempt_is_buried(outbox: Outbox) -> None:
    outbox.attempt_limit = 1
    append(outbox, "a.created")
    claim(outbox)
    with outbox.engine.begin() as tx:
        assert outbox.fail_abandoned(tx) == []  # the worker may still be at it
    age_claims(outbox, 6)

    with outbox.engine.begin() as tx:
        assert [row.event_type for row in outbox.fail_abandoned(tx)] == ["a.created"]
    assert [(row.status, row.last_error) for row in rows(outbox)] == [("failed", "worker_lost")]


def test_an_outage_gives_the_attempt_back_however_often_it_happens(outbox: Outbox) -> None:
    append(outbox, "a.created")
    for _ in range(outbox.attempt_limit * 3):
        held = claim(outbox)
        with outbox.engine.begin() as tx:
            assert outbox.release(tx, held, [row.id for row in held.rows], delay=0, error="Outage") == 1

    assert [(row.status, row.attempts) for row in rows(outbox)] == [("pending", 0)]


def test_completed_rows_get_positions_without_a_gap_in_the_order_they_were_settled(outbox: Outbox) -> None:
    append(outbox, *["a.created"] * 6)
    first, second = claim(outbox, 3), claim(outbox, 3)
    complete(outbox, second)
    complete(outbox, first)

    with outbox.engine.connect() as tx:
        feed = tx.execute(text("SELECT position, event_id FROM identity_api.feed ORDER BY position")).all()
    assert [row.position for row in feed] == [1, 2, 3, 4, 5, 6]
    assert [row.event_id for row in feed] == [row.event_id for row in (*second.rows, *first.rows)]


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

    def tell(tx: Connection, chance: random.Random) -> None:
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

    jobs = [tell, tell, work, work, tidy, count]
    with ThreadPoolExecutor(len(jobs)) as threads:
        for running in [threads.submit(over_and_over, job, seed) for seed, job in enumerate(jobs)]:
            running.result()  # raises what a thread raised: a deadlock, say

    assert min(times) > 10
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


def fail(outbox: Outbox) -> int:
    """The id of a new row that has failed."""
    outbox.attempt_limit = 1
    [failed_id] = append(outbox, "a.created", key="account-1")
    held = claim(outbox)
    with outbox.engine.begin() as tx:
        outbox.retry(tx, held, failed_id, "ValueError")
    return failed_id


def test_redriving_copies_a_failed_row_and_leaves_it_failed(outbox: Outbox) -> None:
    failed_id = fail(outbox)
    with outbox.engine.begin() as tx:
        new_id = outbox.redrive(tx, failed_id)
        assert outbox.redrive(tx, new_id or 0) is None  # only a failed row can be redriven

    assert [(row.id, row.status, row.ordering_key, row.redriven_from) for row in rows(outbox)] == [
        (failed_id, "failed", "account-1", None),
        (new_id, "pending", "account-1", failed_id),
    ]


def test_a_failed_row_is_redriven_once_unless_somebody_insists(outbox: Outbox) -> None:
    failed_id = fail(outbox)
    with outbox.engine.begin() as tx:
        first, second = outbox.redrive(tx, failed_id), outbox.redrive(tx, failed_id)
        third = outbox.redrive(tx, failed_id, again=True)
        last = outbox.copy_of(tx, failed_id)

    assert (second, last) == (None, third)
    assert [row.id for row in rows(outbox)] == [failed_id, first, third]


def test_that_a_failed_row_was_redriven_is_not_forgotten_with_the_days(outbox: Outbox) -> None:
    failed_id = fail(outbox)
    with outbox.engine.begin() as tx:
        copy = outbox.redrive(tx, failed_id)
    complete(outbox, claim(outbox))
    with outbox.engine.begin() as tx:
        outbox.prune(tx, days=0)
        assert (outbox.copy_of(tx, failed_id), outbox.redrive(tx, failed_id)) == (copy, None)


def test_an_event_of_a_type_that_is_not_declared_is_refused(engine: Engine) -> None:
    outbox = Outbox(engine, "identity", event_types=("a.created",))

    with outbox.begin() as tx:
        outbox.append(tx, Event("a.created", {}))
        with pytest.raises(ValueError, match=r"a\.deleted"):
            outbox.append(tx, Event("a.deleted", {}))

    assert statuses(outbox) == {"pending": 1}
