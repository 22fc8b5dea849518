"""The outbox engine: what may be claimed, who may settle it, and when a row is failed."""

from contextlib import suppress

from sqlalchemy import text

from chassis.outbox import CLAIM_SECONDS, Claim, Event, Outbox
from tip_local.outbox_kit import age_claims, append, make_due, rows, statuses


def claim(outbox: Outbox, batch: int = 100) -> Claim:
    with outbox.engine.begin() as tx:
        return outbox.claim(tx, batch)


def complete(outbox: Outbox, held: Claim) -> int:
    with outbox.engine.begin() as tx:
        return outbox.complete(tx, held, [row.id for row in held.rows])


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

    assert complete(outbox, late) == 0
    with outbox.engine.begin() as tx:
        assert outbox.retry(tx, late, late.rows[0].id, "Late") is None
        assert outbox.release(tx, late, [late.rows[0].id], delay=0, error="late") == 0
    assert statuses(outbox) == {"processing": 1}
    assert complete(outbox, current) == 1


def test_rows_of_one_key_are_claimed_one_after_the_other(outbox: Outbox) -> None:
    first, second = append(outbox, "a.created", "a.deleted", key="account-1")
    [other] = append(outbox, "a.created", key="account-2")

    held = claim(outbox)
    assert [row.id for row in held.rows] == [first, other]
    assert claim(outbox).rows == ()

    complete(outbox, held)
    assert [row.id for row in claim(outbox).rows] == [second]


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
        assert outbox.bury(tx) == []  # the worker may still be at it
    age_claims(outbox, 6)

    with outbox.engine.begin() as tx:
        assert [event_type for _, event_type in outbox.bury(tx)] == ["a.created"]
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

    with outbox.engine.connect() as tx:
        report = {(entry.status, entry.event_type): entry for entry in outbox.health(tx)}
        naive = tx.execute(
            text(
                "SELECT status, event_type, count(*), min(created_at), max(attempts) FROM identity.outbox GROUP BY 1, 2"
            )
        ).all()
    assert {(row[0], row[1]): tuple(row[2:]) for row in naive} == {
        key: (entry.count, entry.oldest_created_at, entry.max_attempts) for key, entry in report.items()
    }
    assert [key for key, entry in report.items() if entry.oldest_claimed_at] == [("processing", "a.deleted")]


def test_pruning_removes_old_completed_rows_only_and_the_counts_follow(outbox: Outbox) -> None:
    append(outbox, "a.created", "a.created", "a.updated")
    done = claim(outbox, 2)
    complete(outbox, done)
    with outbox.engine.begin() as tx:
        tx.execute(
            text("UPDATE identity.outbox SET created_at = created_at - interval '8 days' WHERE id <> :id"),
            {"id": done.rows[1].id},
        )

    with outbox.engine.begin() as tx:
        assert outbox.prune(tx, days=7) == 1
        report = {(entry.status, entry.event_type): entry.count for entry in outbox.health(tx)}

    assert report == {("completed", "a.created"): 1, ("pending", "a.updated"): 1}


def test_redriving_copies_a_failed_row_and_leaves_it_failed(outbox: Outbox) -> None:
    outbox.attempt_limit = 1
    [failed_id] = append(outbox, "a.created", key="account-1")
    held = claim(outbox)
    with outbox.engine.begin() as tx:
        outbox.retry(tx, held, failed_id, "ValueError")
        new_id = outbox.redrive(tx, failed_id)
        assert outbox.redrive(tx, new_id or 0) is None  # only a failed row can be redriven

    assert [(row.id, row.status, row.ordering_key) for row in rows(outbox)] == [
        (failed_id, "failed", "account-1"),
        (new_id, "pending", "account-1"),
    ]
