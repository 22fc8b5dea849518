"""The outbox health report while a backlog waits: right, and as fast as without one."""

import time
from typing import Any

from sqlalchemy import text

from accounts import model
from chassis.outbox import Event, Outbox
from chassis.outbox.store import BACKLOG
from tip_testing.accounts_caller import Caller
from tip_testing.platform_plugin import Platform

from .outbox_report import NAIVE, PATH, expected_report

UNCOUNTED = text("""
    SELECT count(*) FROM accounts.outbox
    WHERE status = 'pending' AND pending_xid >= (SELECT counted_below FROM accounts.outbox_head)
""")


def _fill(platform: Platform, count: int, status: str) -> None:
    statement = text("""
        INSERT INTO accounts.outbox (event_id, event_type, ordering_key, payload, status)
        SELECT gen_random_uuid(), (CAST(:types AS text[]))[1 + i % 6], i::text, '{}', :status
        FROM generate_series(1, :count) i
    """)
    with platform.admin() as connection:
        connection.execute(statement, {"types": list(model.EVENT_TYPES), "count": count, "status": status})
        connection.execute(text("ANALYZE accounts.outbox"))  # as autovacuum would, sooner or later


def _uncounted(outbox: Outbox) -> int:
    """Waiting rows that every report counts anew."""
    with outbox.engine.connect() as tx:
        return int(tx.execute(UNCOUNTED).scalar_one())


def _roll_up(outbox: Outbox) -> None:
    """As a relay does once a second."""
    with outbox.engine.begin() as tx:
        outbox.roll_up(tx)


def _count_all(outbox: Outbox) -> None:
    """As often as it takes: a transaction of somebody else, an autovacuum's say, puts the counting off."""
    for _ in range(100):
        _roll_up(outbox)
        if not _uncounted(outbox):
            return
        time.sleep(0.1)
    raise AssertionError("it was never counted")


def test_a_report_waits_for_nobody(platform: Platform, operator: Caller, outbox: Outbox) -> None:
    _fill(platform, BACKLOG + 1, "pending")
    with outbox.engine.begin() as tx:
        tx.execute(text("SELECT 1 FROM accounts.outbox_head FOR UPDATE"))  # somebody is completing, for long
        answer = operator.get(PATH)

    assert (answer.status_code, answer.json["pending"]) == (200, BACKLOG + 1)


def test_without_a_relay_a_backlog_is_counted_by_the_reports_themselves_and_only_once(
    platform: Platform, operator: Caller, outbox: Outbox
) -> None:
    _fill(platform, BACKLOG + 1, "pending")
    uncounted = [_uncounted(outbox)]
    reports = [operator.get(PATH).json["pending"]]
    for _ in range(100):  # more than once only if somebody else's transaction put the counting off
        reports.append(operator.get(PATH).json["pending"])
        if not _uncounted(outbox):
            break
        time.sleep(0.1)
    uncounted.append(_uncounted(outbox))

    assert (set(reports), uncounted) == ({BACKLOG + 1}, [BACKLOG + 1, 0])
    assert operator.get(PATH).json == expected_report(outbox)


def test_a_backlog_is_counted_once_and_then_counted_off(platform: Platform, operator: Caller, outbox: Outbox) -> None:
    _fill(platform, 2 * BACKLOG, "pending")
    _count_all(outbox)
    first = operator.get(PATH).json

    with outbox.engine.begin() as tx:
        claim = outbox.claim(tx)
    with outbox.engine.begin() as tx:
        outbox.release(tx, claim, [row.id for row in claim.rows[:10]], delay=0, error="down")
        outbox.append(tx, Event("account.created", {}))
        counted = tx.execute(text("SELECT sum(count) FROM accounts.outbox_backlog")).scalar_one()

    second = operator.get(PATH).json
    assert (first["pending"], counted) == (2 * BACKLOG, 2 * BACKLOG - 100)
    assert (second["pending"], second["processing"]) == (2 * BACKLOG - 89, 90)
    assert second == expected_report(outbox)


def test_a_transaction_still_running_while_a_backlog_is_counted_is_neither_lost_nor_counted_twice(
    platform: Platform, operator: Caller, outbox: Outbox
) -> None:
    with outbox.engine.connect() as slow:
        slow.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))  # on a busy machine it is slower still
        outbox.append(slow, Event("account.created", {}))
        _fill(platform, BACKLOG, "pending")
        _roll_up(outbox)
        before = operator.get(PATH).json["pending"]
        slow.commit()

    counts = []
    for _ in range(3):
        counts.append(operator.get(PATH).json["pending"])
        _roll_up(outbox)

    assert (before, counts) == (BACKLOG, [BACKLOG + 1] * 3)


def test_the_report_does_not_slow_down_with_a_backlog(platform: Platform, operator: Caller, outbox: Outbox) -> None:
    _fill(platform, 100_000, "pending")
    _count_all(outbox)

    with outbox.engine.connect() as tx:  # turn by turn, so that a busy machine slows down both
        pairs = [(_timed(lambda: tx.execute(NAIVE).all()), _timed(lambda: outbox.health(tx))) for _ in range(8)]

    naive, report = (min(times) for times in zip(*pairs, strict=True))
    assert report < naive / 3


def _timed(action: Any) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
