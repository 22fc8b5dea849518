"""Signals that follow a commit: sent by a thread of their own, coalesced, at most once in a few milliseconds.

The caller has committed already, so it never waits for the receiver and never fails because of it. A signal may be
lost: every receiver also polls.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from chassis import logs

log = logs.get(__name__)

MOST_PENDING = 10_000

Send = Callable[[Mapping[str, int]], object]


class AfterCommitSender:
    """Sends the highest position of every key that was signaled. One per process, safe in threads."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], AbstractContextManager[Send]],
        unreachable: tuple[type[Exception], ...],
        *,
        every_s: float,
        retry_s: float,
        failed_event: str,
        keeps: bool = False,
    ) -> None:
        """`keeps`: what could not be sent is sent on the next connection, and not dropped."""
        self._keeps = keeps
        self._name, self._connect, self._unreachable = name, connect, unreachable
        self._every_s, self._retry_s, self._failed_event = every_s, retry_s, failed_event
        self._pending: dict[str, int] = {}
        self._signaled = threading.Event()
        self._lock = threading.Lock()
        self._thread_of: int | None = None
        self._has_failed = False

    def signal(self, key: str = "", position: int = 0) -> None:
        """Return at once. New keys beyond `MOST_PENDING` are dropped."""
        if self._thread_of != os.getpid():
            self._start()
        self._put({key: position})

    def _put(self, signals: Mapping[str, int]) -> None:
        with self._lock:
            for key, position in signals.items():
                if key in self._pending or len(self._pending) < MOST_PENDING:
                    self._pending[key] = max(position, self._pending.get(key, 0))
        self._signaled.set()

    def _start(self) -> None:
        # On first use, so that the thread runs in the worker process and not in the one that forked it.
        with self._lock:
            if self._thread_of != os.getpid():
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
                self._thread_of = os.getpid()

    def _run(self) -> None:
        while True:
            self._signaled.wait()
            try:
                with self._connect() as send:
                    self._send_until_it_fails(send)
            except self._unreachable as error:
                self._log_once(error)
                if not self._keeps:
                    self._take()  # dropped: receivers poll, and the next signal says more
                time.sleep(self._retry_s)

    def _log_once(self, error: Exception) -> None:
        """For each outage."""
        if not self._has_failed:
            log.info(self._failed_event, error=type(error).__name__)
        self._has_failed = True

    def _send_until_it_fails(self, send: Send) -> None:
        while True:
            self._signaled.wait()
            taken = self._take()
            try:
                send(taken)
            except self._unreachable:
                self._put(taken)
                raise
            self._has_failed = False
            time.sleep(self._every_s)

    def _take(self) -> Mapping[str, int]:
        self._signaled.clear()  # first: a signal that comes between is sent, at worst twice
        with self._lock:
            taken, self._pending = self._pending, {}
        return taken
