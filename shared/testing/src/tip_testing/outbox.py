"""Claiming, completing and reading a service's outbox, and moving its clock, from a test."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, text

from chassis.outbox import Claim, Event, Outbox
from chassis.outbox.relay import Routes
from chassis.queues import Publisher
from chassis.worker.main import Prepared


class _EveryType:
    def __contains__(self, _event_type: object) -> bool:
        return True


def every_event(*queues: str) -> Routes:
    """Routes that send events of every type to each of these queues."""
    return dict.fromkeys(queues, _EveryType())


@contextmanager
def consuming(prepared: Prepared, queue: str, queue_url: str) -> Iterator[None]:
    """A consumer in a thread of this process; a last message ends its wait."""
    stop, publisher = threading.Event(), Publisher(queue_url)
    thread = threading.Thread(target=prepared.loop, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        publisher.publish(queue, {})
        publisher.close()
        thread.join()


def empty(admin: Connection, schema: str) -> None:
    """The outbox as its migration made it: far quicker than a database of its own for every test."""
    emptied = ", ".join(f"{schema}.{name}" for name in ("outbox", "outbox_completed", "outbox_backlog"))
    admin.execute(text(f"TRUNCATE {emptied} RESTART IDENTITY"))
    admin.execute(text(f"UPDATE {schema}.outbox_head SET last_position = 0, counted_below = 0"))


def append(outbox: Outbox, *event_types: str, key: str | None = None) -> list[int]:
    """Queue events in one transaction; their row ids."""
    with outbox.engine.begin() as tx:
        before = tx.execute(_sql(outbox, "SELECT coalesce(max(id), 0) FROM {outbox}")).scalar_one()
        for event_type in event_types:
            outbox.append(tx, Event(event_type, {}, ordering_key=key))
        found = tx.execute(_sql(outbox, "SELECT id FROM {outbox} WHERE id > :id ORDER BY id"), {"id": before})
        return list(found.scalars())


def claim(outbox: Outbox, batch: int = 100) -> Claim:
    with outbox.engine.begin() as tx:
        return outbox.claim(tx, batch)


def complete(outbox: Outbox, held: Claim, ids: Sequence[int] | None = None) -> list[int]:
    """Complete these rows of the claim, or all; the ids of those that are completed by it."""
    with outbox.engine.begin() as tx:
        return sorted(outbox.complete(tx, held, [row.id for row in held.rows] if ids is None else ids))


def rows(outbox: Outbox) -> list[Any]:
    with outbox.engine.connect() as tx:
        return list(tx.execute(_sql(outbox, "SELECT * FROM {outbox} ORDER BY id")))


def statuses(outbox: Outbox) -> dict[str, int]:
    return dict(Counter(row.status for row in rows(outbox)))


def inversions(outbox: Outbox) -> list[tuple[str, int, int]]:
    """Pairs of rows of one ordering key that the feed has in the wrong order: the key and the two ids.

    Judged by the rows alone, and not by the statements that claim and settle them.
    """
    last: dict[str, Any] = {}
    found = []
    for row in rows(outbox):
        if row.ordering_key is None or row.position is None:
            continue
        before = last.get(row.ordering_key)
        if before is not None and before.position > row.position:
            found.append((row.ordering_key, before.id, row.id))
        else:
            last[row.ordering_key] = row
    return found


def age_claims(outbox: Outbox, seconds: float) -> None:
    """As if the claims had been made that much earlier."""
    statement = "UPDATE {outbox} SET claimed_at = claimed_at - make_interval(secs => :seconds)"
    with outbox.engine.begin() as tx:
        tx.execute(_sql(outbox, statement), {"seconds": seconds})


def make_due(outbox: Outbox) -> None:
    """As if every back-off had passed."""
    with outbox.engine.begin() as tx:
        tx.execute(_sql(outbox, "UPDATE {outbox} SET available_at = now()"))


def wait_for_a_lock_waiter(outbox: Outbox, unless: Callable[[], bool] = lambda: False) -> None:
    """Return when a session waits for a lock, or when `unless` says that none ever will."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with outbox.engine.connect() as tx:
        for _ in range(10_000):
            if tx.execute(waiting).scalar_one() or unless():
                return
            time.sleep(0.005)
    raise AssertionError("nobody waited")


def _sql(outbox: Outbox, statement: str) -> Any:
    return text(statement.format(outbox=f"{outbox.schema}.outbox"))
