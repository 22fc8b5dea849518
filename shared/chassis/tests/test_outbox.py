"""The outbox engine: what may be claimed, who may settle it, when a row is failed."""

from contextlib import suppress

import pytest
from sqlalchemy import Engine, text

from chassis.outbox import CLAIM_SECONDS, Event, Outbox
from tip_testing.outbox import age_claims, append, claim, complete, make_due, rows, statuses


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


def test_an_event_of_a_type_that_is_not_declared_is_refused(engine: Engine) -> None:
    outbox = Outbox(engine, "identity", event_types=("a.created",))

    with outbox.begin() as tx:
        outbox.append(tx, Event("a.created", {}))
        with pytest.raises(ValueError, match=r"a\.deleted"):
            outbox.append(tx, Event("a.deleted", {}))

    assert statuses(outbox) == {"pending": 1}
