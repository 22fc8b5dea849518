"""Consuming another service's feed: delivered at least once, applied exactly once.

A message only wakes the consumer. What happened is read from the owner's feed (`accounts_api.feed` and the like, by
gap-free position) after the position saved here, and the new position is saved in the transaction of the effect.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Column, Connection, Engine, MetaData, Table, Text, text

from chassis import logs, tracing

log = logs.get(__name__)

BATCH = 100


def create_v1(schema: str) -> str:
    return (
        f"CREATE TABLE {schema}.feed_position (source text CONSTRAINT feed_position_pkey PRIMARY KEY, "
        "position bigint NOT NULL DEFAULT 0);"
    )


def drop_v1(schema: str) -> str:
    return f"DROP TABLE {schema}.feed_position;"


def table(metadata: MetaData) -> None:
    Table(
        "feed_position",
        metadata,
        Column("source", Text, primary_key=True),
        Column("position", BigInteger, nullable=False, server_default="0"),
    )


@dataclass(frozen=True)
class FeedEvent:
    """One event as its owner publishes it."""

    position: int
    event_id: UUID
    event_type: str
    payload: Mapping[str, Any]
    traceparent: str | None


Handle = Callable[[Connection, FeedEvent], None]


def has_news(engine: Engine, schema: str, sources: Collection[str]) -> bool:
    """Whether a feed holds an event that was not consumed yet; one transaction for all, which locks nothing."""
    with engine.begin() as tx:
        return any(_has_unread(tx, schema, source) for source in sources)


def _has_unread(tx: Connection, schema: str, source: str) -> bool:
    """By the feed's last position: to find that there is no later one, Postgres would read the whole feed."""
    statement = text(
        f"SELECT (SELECT max(position) FROM {source}_api.feed) > coalesce("  # noqa: S608
        f"(SELECT position FROM {schema}.feed_position WHERE source = :source), 0)"
    )
    return bool(tx.execute(statement, {"source": source}).scalar_one())


@dataclass(frozen=True)
class Feed:
    """The feed of one service (`source`) as another (`schema`) consumes it."""

    engine: Engine
    schema: str
    source: str
    batch: int = BATCH
    """How many events share a transaction, and so the locks that handling them takes."""

    def drain(self, handle: Handle, stop: threading.Event | None = None) -> int:
        """Handle every event not yet consumed, in order, or until `stop` is set; how many there were."""
        total = 0
        # Checked before every page: a consumer far behind must not take a minute to stop, nor seem to hang meanwhile.
        while not (stop and stop.is_set()) and (consumed := self._page(handle)):
            total += consumed
        return total

    def _page(self, handle: Handle) -> int:
        with self.engine.begin() as tx:
            position = self._locked_position(tx)
            events = self._after(tx, position)
            if events and events[0].position != position + 1:
                # Positions have no gaps, so what is missing was pruned before we consumed it.
                log.error("feed_gap", source=self.source, consumed=position, next=events[0].position)
            if events:  # before they are handled: what that locks is then locked until the commit and no longer
                self._save(tx, events[-1].position)
            for event in events:
                token = tracing.current.set(tracing.Trace.begin(str(event.event_id), event.traceparent))
                try:
                    handle(tx, event)
                finally:
                    tracing.current.reset(token)
        return len(events)

    def _locked_position(self, tx: Connection) -> int:
        tx.execute(
            text(f"INSERT INTO {self.schema}.feed_position (source) VALUES (:source) ON CONFLICT DO NOTHING"),  # noqa: S608
            {"source": self.source},
        )
        found = tx.execute(
            text(f"SELECT position FROM {self.schema}.feed_position WHERE source = :source FOR UPDATE"),  # noqa: S608
            {"source": self.source},
        )
        return int(found.scalar_one())

    def _after(self, tx: Connection, position: int) -> list[FeedEvent]:
        rows = tx.execute(
            text(
                f"SELECT position, event_id, event_type, payload, traceparent FROM {self.source}_api.feed "  # noqa: S608
                "WHERE position > :position ORDER BY position LIMIT :batch"
            ),
            {"position": position, "batch": self.batch},
        )
        return [FeedEvent(*row) for row in rows]

    def _save(self, tx: Connection, position: int) -> None:
        tx.execute(
            text(f"UPDATE {self.schema}.feed_position SET position = :position WHERE source = :source"),  # noqa: S608
            {"position": position, "source": self.source},
        )
