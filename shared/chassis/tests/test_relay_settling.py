"""How a relay settles what it has claimed, and what it does when a row fails."""

import time
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from chassis import metrics
from chassis.outbox import Claim, Outbox, Row
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from tip_testing.outbox import age_claims, append, every_event, rows, statuses


def settled(event_type: str, result: str) -> float:
    return float(metrics.OUTBOX_SETTLED.labels("identity", event_type, result)._value.get())


def test_rows_lost_to_another_relay_are_not_counted_as_completed(
    outbox: Outbox, publisher: Publisher, queue: str
) -> None:
    kind = f"lost.{uuid4().hex}"
    append(outbox, kind, kind)
    relay = Relay(outbox, publisher, every_event(queue))
    late = relay._claim()
    age_claims(outbox, 6)
    current = relay._claim()

    relay._complete(late, list(late.rows))
    relay._complete(current, list(current.rows))

    assert (settled(kind, "lost"), settled(kind, "completed")) == (2, 2)


class Unlucky(Outbox):
    """An outbox whose database fails the next so many completions."""

    unlucky = 0

    def complete(self, tx: Any, claim: Claim, ids: Any) -> frozenset[int]:
        if self.unlucky:
            self.unlucky -= 1
            tx.execute(text("SET LOCAL statement_timeout = 1; SELECT pg_sleep(1)"))
        return super().complete(tx, claim, ids)


@pytest.mark.parametrize(("failures", "now"), [(1, ("completed", 1)), (2, ("pending", 0))])
def test_what_was_published_and_could_not_be_settled_is_settled_again_or_keeps_its_attempt(
    outbox: Outbox, publisher: Publisher, queue: str, failures: int, now: tuple[str, int]
) -> None:
    unlucky = Unlucky(outbox.engine, outbox.schema, attempt_limit=1)
    unlucky.unlucky = failures
    append(outbox, "a.created")

    with suppress(OperationalError):
        Relay(unlucky, publisher, every_event(queue)).drain_once()

    assert [(row.status, row.attempts) for row in rows(outbox)] == [now]


@pytest.mark.parametrize("trouble", ["a fault", "a lost worker"])
def test_the_failure_handler_is_called_for_a_fault_and_for_a_lost_worker(
    outbox: Outbox, publisher: Publisher, queue: str, trouble: str
) -> None:
    def refuse(_row: Row) -> None:
        raise ValueError

    notified: list[str] = []
    outbox.attempt_limit = 1
    relay = Relay(
        outbox,
        publisher,
        every_event(queue),
        {"a.created": refuse},
        {"a.created": lambda _tx, payload: notified.append(payload["event_id"])},
    )
    append(outbox, "a.created")
    if trouble == "a lost worker":
        relay._claim()
        age_claims(outbox, 6)
        relay._abandoned_at = 0.0
    relay.drain_once()

    assert statuses(outbox) == {"failed": 1}
    assert notified == [str(row.event_id) for row in rows(outbox)]


def test_a_failure_handler_that_fails_leaves_the_row_failed(outbox: Outbox, publisher: Publisher, queue: str) -> None:
    def refuse(_row: Row) -> None:
        raise ValueError

    def broken(tx: Any, _payload: Any) -> None:
        tx.execute(text("SELECT 1 / 0"))

    outbox.attempt_limit = 1
    append(outbox, "a.created", "b.created")

    Relay(outbox, publisher, every_event(queue), {"a.created": refuse}, {"a.created": broken}).drain_once()

    assert statuses(outbox) == {"failed": 1, "completed": 1}


def test_what_cannot_be_done_before_the_claim_runs_out_is_given_back(
    outbox: Outbox, publisher: Publisher, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.outbox.relay.WORK_BUDGET_S", 0.3)
    append(outbox, *["slow.created"] * 3)

    Relay(outbox, publisher, every_event(queue), {"slow.created": lambda _row: time.sleep(0.4)}).drain_once()

    assert [(row.status, row.attempts) for row in rows(outbox)] == [("completed", 1), ("pending", 0), ("pending", 0)]
