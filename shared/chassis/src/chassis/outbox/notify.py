"""Waking the relay without paying for it in the submitting transaction.

A NOTIFY inside the transaction costs 16 to 40 % of the submit rate, because commits with notifications queue up behind
one lock. So a thread of the web process sends at most one NOTIFY every few milliseconds, after the commits. A lost
NOTIFY costs at most one rest of the relay (`chassis.rest`).
"""

import select
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg2
from psycopg2 import sql
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from chassis import logs
from chassis.worker.after_commit import AfterCommitSender, Send

log = logs.get(__name__)

_EVERY_S, _RETRY_S = 0.005, 0.25


def channel(schema: str, topic: str = "outbox") -> str:
    return f"tip_{topic}_{schema}"


class Notifier:
    """Wakes the relays of one service's outbox."""

    def __init__(self, engine: Engine, schema: str) -> None:
        self._engine, self._channel = engine, channel(schema)
        self._sender = AfterCommitSender(
            f"{self._channel}-notifier",
            self._connect,
            (SQLAlchemyError, psycopg2.Error),
            every_s=_EVERY_S,
            retry_s=_RETRY_S,
            failed_event="outbox_notify_failed",
            keeps=True,  # after a restart of the database the first one finds its connection dead
        )

    def notify(self) -> None:
        """Return at once; the relay is woken within a few milliseconds."""
        self._sender.signal()

    @contextmanager
    def _connect(self) -> Iterator[Send]:
        statement = sql.SQL("NOTIFY {}").format(sql.Identifier(self._channel))
        with closing(_own_connection(self._engine)) as connection, connection.cursor() as cursor:
            yield lambda _signals: cursor.execute(statement)


def _own_connection(engine: Engine) -> Any:
    """A connection that is ours alone: one from the pool would be pinged and reset for every NOTIFY."""
    pooled = engine.raw_connection()
    driver: Any = pooled.driver_connection
    pooled.detach()  # from now on it no longer takes a place in the pool
    driver.autocommit = True
    return driver


class NotifyListener:
    """The relay's side: waits for a NOTIFY, or for the time-out. Other work of a service has topics of its own."""

    def __init__(self, engine: Engine, schema: str, *topics: str) -> None:
        self._engine = engine
        self._topics = {channel(schema, topic): topic for topic in topics or ("outbox",)}
        self._driver: Any = None

    def wait(self, seconds: float) -> frozenset[str]:
        """The topics that there may be news of; all of them when the connection had to be made anew."""
        try:
            return self._wait(seconds)
        except (SQLAlchemyError, psycopg2.Error, OSError, ValueError) as error:
            log.info("outbox_listen_lost", error=type(error).__name__)
            self._driver = None
            time.sleep(min(seconds, 1.0))
            return frozenset(self._topics.values())

    def _wait(self, seconds: float) -> frozenset[str]:
        if self._driver is None:
            self._driver = self._listen()
            return frozenset(self._topics.values())  # something may have been written before we listened: poll first
        if not self._driver.notifies:
            readable, _, _ = select.select([self._driver], [], [], seconds)
            if readable:
                self._driver.poll()
        received = frozenset(self._topics[notify.channel] for notify in self._driver.notifies)
        self._driver.notifies.clear()
        return received

    def _listen(self) -> Any:
        driver = _own_connection(self._engine)
        with driver.cursor() as cursor:
            for name in self._topics:
                cursor.execute(sql.SQL("LISTEN {}").format(sql.Identifier(name)))
        return driver
