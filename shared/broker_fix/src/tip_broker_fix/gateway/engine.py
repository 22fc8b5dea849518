"""The session at work: one line to the broker, one transaction for all that comes together, one owner.

Whatever goes wrong ends the line and begins anew with what the database has: start-up is recovery.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

import psycopg2

from tip_broker_fix.gateway import store
from tip_broker_fix.gateway.codec import Garbled, Message, take_messages
from tip_broker_fix.gateway.config import Config
from tip_broker_fix.gateway.orders import Change, Order
from tip_broker_fix.gateway.session import Phase, Session, on_the_line
from tip_broker_fix.gateway.usecases import NoAnswer, Refusal, Request, SessionDown, Step, Until, history

log = logging.getLogger("fix_gateway")
T = TypeVar("T")

CONNECT_SECONDS = 3.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 2.0
TICKS = 10  # in the time of a lease
MOST_TOGETHER = 256
READ_BYTES = 2**16
BROKEN = (OSError, EOFError, TimeoutError, Garbled, psycopg2.Error, store.LeaseLost)
"""What ends a line."""


class PendingRequest(NamedTuple):
    request: Request
    until: float
    done: "asyncio.Future[Order]"


Input = PendingRequest | list[Message] | None
"""A request, messages of the broker, or nothing but time."""


class Waiting(NamedTuple):
    is_done: Until
    done: "asyncio.Future[Order]"


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Engine:
    config: Config
    publish: Callable[[list[Change]], None]
    on_lost: Callable[[], Awaitable[None]]
    """Called when the line to the broker is lost."""
    owner: UUID = field(default_factory=uuid4)
    session: Session | None = None
    _tx: Any = None
    _writer: asyncio.StreamWriter | None = None
    _inputs: "asyncio.Queue[Input]" = field(default_factory=asyncio.Queue)
    _waiting: dict[str, list[Waiting]] = field(default_factory=dict)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _kept_at: float = 0.0
    _was_active: bool = False

    @property
    def is_active(self) -> bool:
        return self.session is not None and self.session.is_active

    async def run(self) -> None:
        """Until it is canceled."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._serve()
            except BROKEN as error:
                log.warning("fix_line_lost error=%s", type(error).__name__)
            finally:
                await self._hang_up()
            longer = min(LONGEST_PAUSE_SECONDS, 2 * pause, self.config.lease_seconds / 3)
            pause = FIRST_PAUSE_SECONDS if self._was_active else longer
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """The next gateway need not wait for the end of the lease."""
        with suppress(*BROKEN):
            await self._in_thread(self._give_back)
        self._thread.shutdown()

    async def request(self, request: Request) -> Order:
        """The order as it is once the broker has answered."""
        if not self.is_active:
            raise SessionDown("no session with the broker")
        done: asyncio.Future[Order] = asyncio.get_running_loop().create_future()
        until = time.monotonic() + self.config.answer_seconds
        self._inputs.put_nowait(PendingRequest(request, until, done))
        try:
            return await asyncio.wait_for(done, self.config.answer_seconds)
        except TimeoutError:
            raise NoAnswer from None

    async def _serve(self) -> None:
        """One line, from its beginning to its end."""
        self._was_active = False
        numbers = await self._in_thread(self._take_lease)
        if numbers is None:
            await asyncio.sleep(self.config.lease_seconds / 3)
            return
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, self._writer = await self._connect()
        self.session = Session(self.config.names, *numbers, history=history(self._tx, self.config.session, utc_now))
        self.session.log_on(utc_now())
        async with _running(self._read(reader), self._tick()):
            await self._step([])
            while self.session.phase is not Phase.ENDED:
                await self._step(await self._gathered())
                self._was_active = self._was_active or self.session.is_active
        log.info("fix_session_ended reason=%s", self.session.end_reason)

    def _connect(self) -> Any:
        context = ssl.create_default_context(cafile=self.config.tls_ca or None) if self.config.tls else None
        return asyncio.open_connection(self.config.broker_host, self.config.broker_port, ssl=context)

    async def _gathered(self) -> list[Input]:
        """What waits, at least one."""
        inputs = [await self._inputs.get()]
        while len(inputs) < MOST_TOGETHER and not self._inputs.empty():
            inputs.append(self._inputs.get_nowait())
        return inputs

    async def _step(self, inputs: list[Input]) -> None:
        """Keep, then write, then answer."""
        if self.session is None or self._writer is None:
            return
        step, refused, sent = await self._in_thread(self._transact, self.session, inputs)
        for request, error in refused:
            _settle(request.done, error)
        self._writer.write(b"".join(on_the_line(self.config.names, out) for out in self.session.outgoing))
        self.session.outgoing = []
        for request, is_done in sent:
            self._wait(step, request, is_done)
        self._notify(step)
        await self._writer.drain()

    def _transact(
        self, session: Session, inputs: list[Input]
    ) -> tuple[Step, list[tuple[PendingRequest, Exception]], list[tuple[PendingRequest, Until]]]:
        """In the thread of the database."""
        step = Step(self._tx, self.config.session, session, utc_now())
        refused: list[tuple[PendingRequest, Exception]] = []
        sent: list[tuple[PendingRequest, Until]] = []
        with self._tx:
            requests = [given.request for given in inputs if isinstance(given, PendingRequest)]
            step.load(name for request in requests for name in request.concerns)
            for given in inputs:
                if isinstance(given, list):
                    step.receive(given)
                elif given is not None:
                    self._begin(step, given, refused, sent)
            session.tick(step.now)
            if step.changed or session.outgoing or self._is_due():
                step.keep(self.owner, self.config.lease_seconds)
                self._kept_at = time.monotonic()
        return step, refused, sent

    def _begin(
        self,
        step: Step,
        pending: PendingRequest,
        refused: list[tuple[PendingRequest, Exception]],
        waiting: list[tuple[PendingRequest, Until]],
    ) -> None:
        try:
            if pending.until < time.monotonic():
                raise SessionDown("the gateway was too slow")
            waiting.append((pending, pending.request.run(step)))
        except Refusal as refusal:
            refused.append((pending, refusal))

    def _is_due(self) -> bool:
        return time.monotonic() - self._kept_at > self.config.lease_seconds / 3

    def _wait(self, step: Step, pending: PendingRequest, is_done: Until) -> None:
        order = step.known[pending.request.name]
        if order is not None and is_done(order):
            _settle(pending.done, order)
        else:
            self._waiting.setdefault(pending.request.name, []).append(Waiting(is_done, pending.done))

    def _notify(self, step: Step) -> None:
        """Change by change: a cancel may be taken in and overtaken by a fill at once."""
        for order in [change.order for change in step.changes]:
            callers = self._waiting.pop(order.client_order_id, [])
            for caller in callers:
                if caller.is_done(order):
                    _settle(caller.done, order)
            if rest := [caller for caller in callers if not caller.done.done()]:
                self._waiting[order.client_order_id] = rest
        self.publish(step.changes)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        buffer = bytearray()
        while data := await reader.read(READ_BYTES):
            buffer += data
            if messages := take_messages(buffer):
                self._inputs.put_nowait(messages)
        raise EOFError

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self.config.lease_seconds / TICKS)
            self._inputs.put_nowait(None)

    async def _hang_up(self) -> None:
        """Whoever waits learns nothing more on this line."""
        for caller in chain.from_iterable(self._waiting.values()):
            _settle(caller.done, NoAnswer())
        self._waiting = {}
        while not self._inputs.empty():
            given = self._inputs.get_nowait()
            if isinstance(given, PendingRequest):
                _settle(given.done, SessionDown("no session with the broker"))
        self.session = None
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            await self.on_lost()

    def _take_lease(self) -> store.Numbers | None:
        if self._tx is not None:
            self._tx.close()
        self._tx = store.connect(self.config.database_url)
        with self._tx:
            return store.take_lease(self._tx, self.config.session, self.owner, self.config.lease_seconds)

    def _give_back(self) -> None:
        if self._tx is not None and not self._tx.closed:
            with self._tx:
                store.give_back_lease(self._tx, self.config.session, self.owner)

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


def _settle(done: "asyncio.Future[Order]", result: Order | Exception) -> None:
    if done.done():
        return
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(result)


class _running:  # noqa: N801 - reads as a word of the language
    """Beside the block; what ends one of them ends the block."""

    def __init__(self, *work: Any) -> None:
        self._work = work
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> None:
        await self._group.__aenter__()
        self._tasks = [self._group.create_task(work) for work in self._work]

    async def __aexit__(self, *raised: Any) -> None:
        for task in self._tasks:
            task.cancel()
        try:
            await self._group.__aexit__(*raised)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
