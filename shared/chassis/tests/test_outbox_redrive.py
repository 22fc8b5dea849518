"""A failed row is redriven as a copy."""

from chassis.outbox import Outbox
from tip_testing.outbox import append, claim, complete, rows


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
