"""Hints through a kombu fanout: a log has grown to this position.

A writer publishes them after its commit; a reader that receives one reads the log. Hints may be lost, doubled or late:
readers also poll. So a writer never waits for the broker and never fails because of it.
"""

import asyncio
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from kombu import Consumer, Exchange, Message, Producer, Queue

from chassis import logs, queues
from chassis.worker.after_commit import AfterCommitSender, Send

log = logs.get(__name__)

EXCHANGE = Exchange("tip-hints", type="fanout", durable=False)
_EVERY_S = 0.004
_RETRY_S = 1.0
_POLL_S = 1.0  # how soon a listener notices that it should stop
_SILENCE_S = 5.0
_connections = itertools.count(1)


class LogHeadHints:
    """The writers' side: publishes how far a log has grown. One per process, safe in threads."""

    def __init__(self, queue_url: str) -> None:
        self._url = queue_url
        self._sender = AfterCommitSender(
            "hints",
            self._connect,
            queues.UNREACHABLE,
            every_s=_EVERY_S,
            retry_s=_RETRY_S,
            failed_event="hint_publish_failed",
        )

    def publish(self, log_id: object, position: int) -> None:
        """Return at once; the listeners know of the position within a few milliseconds."""
        self._sender.signal(str(log_id), position)

    @contextmanager
    def _connect(self) -> Iterator[Send]:
        with queues.connection(self._url, queues.PUBLISHING) as opened:
            opened.ensure_connection(max_retries=0)  # kombu would rest two seconds and try again
            yield _publishing(opened)


async def listen(queue_url: str, receive: Send) -> None:
    """Call `receive` with the newest position of every log that grew, until cancelled."""
    loop, stop = asyncio.get_running_loop(), threading.Event()
    failed = loop.create_future()

    def on_the_loop(call: Callable[..., object], argument: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(call, argument)

    def run() -> None:
        try:
            _listen(queue_url, partial(on_the_loop, receive), stop)
        except Exception as error:  # noqa: BLE001 - whoever awaits this decides what it means
            on_the_loop(failed.set_exception, error)

    # kombu knows no event loop, so it listens in a thread. Nobody waits for that one: it may be waiting for a broker.
    threading.Thread(target=run, name="hints", daemon=True).start()
    try:
        await failed
    finally:
        stop.set()


def _listen(queue_url: str, receive: Send, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            with queues.connection(queue_url) as opened:
                opened.ensure_connection(max_retries=1, interval_start=0.1, timeout=2)
                _receive(opened, receive, stop)
        except queues.UNREACHABLE as error:
            log.info("hint_listen_lost", error=type(error).__name__)
            stop.wait(_RETRY_S)


def _receive(opened: Any, receive: Send, stop: threading.Event) -> None:
    received_at = probed_at = time.monotonic()

    def received(body: Any, _: Message) -> None:
        nonlocal received_at
        received_at = time.monotonic()
        receive(_positions(body))

    with Consumer(
        opened, [_queue()], callbacks=[received], accept=["json"], no_ack=True, on_decode_error=lambda *_: None
    ):
        publish = _publishing(opened)
        while not stop.is_set():
            with suppress(TimeoutError):
                opened.drain_events(timeout=_POLL_S)
            # A connection that is dead at the other end only is silent, too: an empty hint now and then probes it.
            now = time.monotonic()
            if now > received_at + 2 * _SILENCE_S:
                raise OSError("silent")
            if now > probed_at + _SILENCE_S:
                probed_at = now
                publish({})


def _queue() -> Queue:
    """A listener's own. Never one of an earlier connection, which the broker may still believe to be open."""
    name = f"{EXCHANGE.name}.{socket.gethostname()}.{os.getpid()}.{next(_connections)}"
    return Queue(name, EXCHANGE, durable=False, exclusive=True, auto_delete=True)


def _publishing(opened: Any) -> Send:
    producer = Producer(opened.channel(), EXCHANGE)
    return lambda positions: producer.publish(
        dict(positions), serializer="json", delivery_mode="transient", retry=False
    )


def _positions(body: Any) -> dict[str, int]:
    """The positions in a message; none if it is not one of ours."""
    return {log_id: at for log_id, at in body.items() if isinstance(at, int)} if isinstance(body, dict) else {}
