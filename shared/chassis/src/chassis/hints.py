"""Telling other processes that a log has grown, without waiting for anybody: a kombu fanout, hints and nothing more.

A writer tells after its commit how far a log has come; a reader that hears of it reads the log. Hints may be lost,
doubled or late: readers also look by themselves. So a writer never waits for the broker and never fails because of it.
"""

import asyncio
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kombu import Consumer, Exchange, Message, Producer, Queue

from chassis import logs, queues

log = logs.get(__name__)

EXCHANGE = Exchange("tip-hints", type="fanout", durable=False)
_AT_MOST_EVERY_S = 0.004
_RETRY_S = 1.0
_MAX_WAITING = 10_000
_LOOK_S = 0.2  # how soon a listener notices that it should stop
_SILENCE_S = 5.0
_connections = itertools.count(1)

Heard = Callable[[Mapping[str, int]], object]


class Hints:
    """The writers' side. One per process and safe in threads; the sending is a thread's own."""

    def __init__(self, queue_url: str) -> None:
        self._url = queue_url
        self._waiting: dict[str, int] = {}
        self._told = threading.Event()
        self._thread_of: int | None = None
        self._lock = threading.Lock()

    def tell(self, log_id: object, position: int) -> None:
        """Return at once; whoever listens knows of the position within a few milliseconds."""
        if self._thread_of != os.getpid():
            self._start()
        with self._lock:
            if len(self._waiting) < _MAX_WAITING:
                self._waiting[str(log_id)] = max(position, self._waiting.get(str(log_id), 0))
        self._told.set()

    def _start(self) -> None:
        # Started on first use, so that it runs in the worker process and not in the one that forked it.
        with self._lock:
            if self._thread_of != os.getpid():
                threading.Thread(target=self._run, name="hints", daemon=True).start()
                self._thread_of = os.getpid()

    def _run(self) -> None:
        while True:
            self._told.wait()
            try:
                with queues.connection(self._url, queues.PUBLISHING) as opened:
                    opened.ensure_connection(max_retries=0)  # kombu would rest two seconds and try again
                    self._send(_announcing(opened))
            except queues.UNREACHABLE as error:
                log.info("hints_unheard", error=type(error).__name__)
                time.sleep(_RETRY_S)
                self._forget()

    def _forget(self) -> None:
        """What could not be told is not told again: the readers look by themselves, and the next hint says more."""
        with self._lock:
            self._waiting = {}
            self._told.clear()

    def _send(self, announce: Heard) -> None:
        while True:
            self._told.wait()
            self._told.clear()
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            announce(waiting)
            time.sleep(_AT_MOST_EVERY_S)


async def listen(queue_url: str, heard: Heard) -> None:
    """Call `heard` with the newest position of every log that grew, until cancelled."""
    loop, stop = asyncio.get_running_loop(), threading.Event()
    failed = loop.create_future()

    def bring(call: Callable[..., object], what: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(call, what)

    def run() -> None:
        try:
            _listen(queue_url, lambda said: bring(heard, said), stop)
        except Exception as error:  # noqa: BLE001 - whoever awaits this decides what it means
            bring(failed.set_exception, error)

    # kombu knows no event loop, so it listens in a thread. Nobody waits for that one: it may be waiting for a broker.
    threading.Thread(target=run, name="hints", daemon=True).start()
    try:
        await failed
    finally:
        stop.set()


def _listen(queue_url: str, heard: Heard, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            with queues.connection(queue_url) as opened:
                opened.ensure_connection(max_retries=1, interval_start=0.1, timeout=2)
                _hear(opened, heard, stop)
        except queues.UNREACHABLE as error:
            log.info("hints_lost", error=type(error).__name__)
            stop.wait(_RETRY_S)


def _hear(opened: Any, heard: Heard, stop: threading.Event) -> None:
    heard_at = asked_at = time.monotonic()

    def received(said: Any, _: Message) -> None:
        nonlocal heard_at
        heard_at = time.monotonic()
        heard(_positions(said))

    with Consumer(
        opened, [_queue()], callbacks=[received], accept=["json"], no_ack=True, on_decode_error=lambda *_: None
    ):
        announce = _announcing(opened)
        while not stop.is_set():
            with suppress(TimeoutError):
                opened.drain_events(timeout=_LOOK_S)
            # A connection that is dead at the other end only is silent, too: so something is said now and then.
            now = time.monotonic()
            if now > heard_at + 2 * _SILENCE_S:
                raise OSError("silent")
            if now > asked_at + _SILENCE_S:
                asked_at = now
                announce({})


def _queue() -> Queue:
    """A listener's own. Never one of an earlier connection, which the broker may still believe to be open."""
    name = f"{EXCHANGE.name}.{socket.gethostname()}.{os.getpid()}.{next(_connections)}"
    return Queue(name, EXCHANGE, durable=False, exclusive=True, auto_delete=True)


def _announcing(opened: Any) -> Heard:
    producer = Producer(opened.channel(), EXCHANGE)
    return lambda positions: producer.publish(
        dict(positions), serializer="json", delivery_mode="transient", retry=False
    )


def _positions(said: Any) -> dict[str, int]:
    """What a message says; nothing, if it is not one of ours."""
    return {log_id: at for log_id, at in said.items() if isinstance(at, int)} if isinstance(said, dict) else {}
