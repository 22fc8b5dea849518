"""Messages through kombu: wake-ups that carry ids. Losing, doubling or reordering any of them changes nothing."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kombu import Connection, Consumer, Message, Producer, Queue
from kombu.exceptions import KombuError, OperationalError
from kombu.transport import pyamqp
from redis.exceptions import RedisError

from chassis import logs
from chassis.rest import Rest

log = logs.get(__name__)

OUTAGE_POLL_S = 1.0
LONGEST_QUEUE = 1_000  # wake-ups that wait for their consumer; beyond that they only fill memory
CHECK_EVERY = 50
_LISTENING = {
    "visibility_timeout": 30,
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
    "unacked_mutex_expire": 5,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
    "health_check_interval": 10,
    # redis-py would connect again in the middle of a read, and wait there for a subscription that nobody has renewed.
    "retry_on_timeout": False,
}
# A relay publishes under a claim of five seconds: a broker that does not answer must be given up well before.
PUBLISHING = {
    "socket_timeout": 0.3,
    "socket_connect_timeout": 0.3,
    "socket_keepalive": True,
    "retry_on_timeout": False,
}
# Everything kombu and its drivers raise when the broker is out of reach.
_AMQP = (*pyamqp.Transport.connection_errors, *pyamqp.Transport.channel_errors)
UNREACHABLE = (OperationalError, KombuError, RedisError, OSError, *_AMQP)


class Outage(Exception):
    """Something the work depends on is down; the work itself is not at fault."""


def name(service: str, process: str) -> str:
    """The queue that wakes one kind of process."""
    return f"tip.{service}.{process}"


def connection(url: str, options: Mapping[str, Any] = _LISTENING) -> Any:
    usable = dict(options) if url.startswith(("redis", "valkey")) else {}
    return Connection(url, transport_options=usable, connect_timeout=1, heartbeat=0)


class Publisher:
    """Puts messages on named queues. Not for use by several threads at once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._open: tuple[Any, Any] | None = None
        self._seen: dict[str, tuple[int, int]] = {}

    def publish(self, queue: str, body: dict[str, Any]) -> None:
        """Hand one message to the broker, or raise Outage."""
        try:
            producer = self._producer()
            if self._is_full(queue, producer.channel):
                return  # its consumer polls anyway; one more message would wake nobody
            # The nameless exchange reaches a queue by its name even after the broker has forgotten every binding.
            producer.publish(body, exchange="", routing_key=queue, serializer="json", delivery_mode=2, retry=False)
        except UNREACHABLE as error:
            self.close()
            raise Outage(type(error).__name__) from error

    def _is_full(self, queue: str, channel: Any) -> bool:
        """Whether nobody seems to empty the queue. Declares it too, so it is checked only now and then."""
        sent, waiting = self._seen.get(queue, (0, 0))
        if sent % CHECK_EVERY == 0:
            waiting = Queue(queue, durable=True)(channel).queue_declare().message_count
        self._seen[queue] = (sent + 1, waiting)
        return waiting >= LONGEST_QUEUE

    def _producer(self) -> Any:
        if self._open is None:
            opened = connection(self._url, PUBLISHING)
            opened.ensure_connection(max_retries=0)  # kombu would rest two seconds and try again
            self._open = (opened, Producer(opened.channel()))
        return self._open[1]

    def close(self) -> None:
        opened, self._open = self._open, None
        self._seen.clear()
        if opened:
            with _ignoring_a_dead_connection():
                opened[0].release()


def listen(
    url: str,
    queue: str,
    work: Callable[[], object],
    stop: threading.Event,
    *,
    follow_up: Sequence[float] = (),
    rest: Rest | None = None,
) -> None:
    """Call `work` after every message, and without one after each `rest`; acknowledge after it has returned.

    `work` finds what to do in Postgres, so nobody reads the messages, and without a broker it only polls. It says
    whether to poll again soon. After a message it is called again after each pause of `follow_up`.
    """
    rest = rest or Rest()
    while not stop.is_set():
        try:
            with connection(url) as opened:
                opened.ensure_connection(max_retries=1, interval_start=0.1, timeout=2)
                _consume(opened, queue, work, stop, follow_up, rest)
        except UNREACHABLE as error:
            log.warning("queue_unreachable", queue=queue, error=type(error).__name__)
            work()
            stop.wait(OUTAGE_POLL_S)


def _consume(
    opened: Any, queue: str, work: Callable[[], object], stop: threading.Event, follow_up: Sequence[float], rest: Rest
) -> None:
    received: list[Message] = []
    pauses: deque[float] = deque()

    def on_message(_body: Any, message: Message) -> None:
        received.append(message)

    def woken(seconds: float) -> bool:
        with suppress(TimeoutError):
            opened.drain_events(timeout=seconds)
        return bool(received)

    with Consumer(opened, [Queue(queue, durable=True)], callbacks=[on_message], accept=["json"], prefetch_count=1):
        while not stop.is_set():
            if work():
                rest.begin_anew()
            while received:
                received.pop().ack()
            if pauses:
                woken(pauses.popleft())
            else:
                rest.wait(woken, stop)
            if received:
                pauses = deque(follow_up)


@contextmanager
def _ignoring_a_dead_connection() -> Iterator[None]:
    try:
        yield
    except UNREACHABLE as error:
        log.debug("queue_close_failed", error=type(error).__name__)
