"""Waking the relay without paying for it in the submitting transaction.

A NOTIFY inside the transaction costs 16 to 40 % of the submit rate, because commits with notifications queue up behind
one lock. So a thread of the web process sends at most one NOTIFY every few milliseconds, after the commits. A lost
ring costs at most one sweep of the relay.
"""

import os
import select
import threading
import time
from typing import Any

import psycopg2
from psycopg2 import sql
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from chassis import logs

log = logs.get(__name__)

_AT_MOST_EVERY_S = 0.02


def channel(schema: str) -> str:
    return f"tip_outbox_{schema}"


class Bell:
    """Rings the relay of one service's outbox."""

    def __init__(self, engine: Engine, schema: str) -> None:
        self._engine, self._channel = engine, channel(schema)
        self._rung = threading.Event()
        self._thread_of: int | None = None
        self._lock = threading.Lock()

    def ring(self) -> None:
        """Return at once; the relay is woken within a few milliseconds."""
        if self._thread_of != os.getpid():
            self._start()
        self._rung.set()

    def _start(self) -> None:
        # Started on first use, so that it runs in the worker process and not in the one that forked it.
        with self._lock:
            if self._thread_of != os.getpid():
                threading.Thread(target=self._run, name=f"{self._channel}-bell", daemon=True).start()
                self._thread_of = os.getpid()

    def _run(self) -> None:
        cursor: Any = None
        while True:
            self._rung.wait()
            self._rung.clear()
            try:
                cursor = cursor or _own_cursor(self._engine)
                cursor.execute(sql.SQL("NOTIFY {}").format(sql.Identifier(self._channel)))
            except (SQLAlchemyError, psycopg2.Error) as error:
                log.info("outbox_bell_unheard", error=type(error).__name__)
                cursor = None
            time.sleep(_AT_MOST_EVERY_S)


def _own_cursor(engine: Engine) -> Any:
    """On a connection that is ours alone: one from the pool would be pinged and reset for every ring."""
    pooled = engine.raw_connection()
    driver: Any = pooled.driver_connection
    pooled.detach()  # from now on it no longer takes a place in the pool
    driver.autocommit = True
    return driver.cursor()


class Ear:
    """The relay's side: waits for a ring, or for the time-out."""

    def __init__(self, engine: Engine, schema: str) -> None:
        self._engine, self._channel = engine, channel(schema)
        self._driver: Any = None

    def wait(self, seconds: float) -> None:
        try:
            self._wait(seconds)
        except (SQLAlchemyError, psycopg2.Error, OSError, ValueError) as error:
            log.info("outbox_ear_lost", error=type(error).__name__)
            self._driver = None
            time.sleep(min(seconds, 1.0))

    def _wait(self, seconds: float) -> None:
        if self._driver is None:
            self._driver = self._listen()
            return  # something may have been written before we listened: look first
        if not self._driver.notifies:
            readable, _, _ = select.select([self._driver], [], [], seconds)
            if readable:
                self._driver.poll()
        self._driver.notifies.clear()

    def _listen(self) -> Any:
        cursor = _own_cursor(self._engine)
        cursor.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        return cursor.connection
