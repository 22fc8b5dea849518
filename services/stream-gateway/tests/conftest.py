"""A gateway as its own process, somebody who writes to the logs, and subscribers."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import grpc
import pytest
import requests
from sqlalchemy import create_engine, text

from chassis import db, hints
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform
from tip_testing.ports import reserved_port
from tip_testing.processes import Running, start
from trading_proto import trading_pb2, trading_pb2_grpc

from .proxy import Proxy

ALL_TYPES = [number for name, number in trading_pb2.EventType.items() if number]
BROKER_ORDER = trading_pb2.EVENT_TYPE_BROKER_ORDER
ORDER = {
    "intent_id": "5b3a7e0e-6c1f-4a3e-9d5f-2f0f6a1d9c11",
    "broker_order_id": "b-1",
    "symbol": "AAPL",
    "order_side": "BUY",
    "order_kind": "Limit",
    "status": "ACCEPTED",
    "quantity": "10",
    "filled_quantity": "0",
    "leaves_quantity": "10",
    "average_fill_price": None,
    "limit_price": "187.50",
}

_BUMP = text("""
    INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
    VALUES (:account_id, :count, '', '')
    ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + :count
    RETURNING last_sequence
""")
_EVENTS = text("""
    INSERT INTO intents.account_event (account_id, sequence, id, type, payload, traceparent, occurred_at)
    SELECT :account_id, sequence, gen_random_uuid(), :type, :payload, :traceparent, :occurred_at
    FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS sequence
""")
_ACTION = text("""
    INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload,
        symbol, order_side, spec, route_strategy, actor_type, actor_id, controls, to_status, intent_created_at,
        previous_hash, hash, created_at)
    VALUES (:account_id, :sequence, gen_random_uuid(), gen_random_uuid(), 'paper', gen_random_uuid(), 'CREATE', '{}',
        'AAPL', 'BUY', :spec, 'AUTO', 'api_key', 'some-key', :controls, 'PENDING', now(), '\\x01', '\\x02', now())
""")


class Writer:
    """Writes as the platform does: the head is bumped in the transaction of the event."""

    def __init__(self, platform: Platform) -> None:
        self._engine = create_engine(db.with_driver(platform.admin_url), pool_size=4, pool_pre_ping=True)
        self._hints = hints.LogHeadHints(platform.redis_url)

    def append(
        self,
        account_id: UUID,
        count: int = 1,
        *,
        kind: str = "BROKER_ORDER",
        payload: dict[str, Any] | None = None,
        traceparent: str | None = None,
        age: str = "0 seconds",
        hint: bool = True,
    ) -> int:
        """Append events; the account's last sequence. Without `hint` nobody is told."""
        from json import dumps

        with self._engine.begin() as tx:
            last = int(tx.execute(_BUMP, {"account_id": account_id, "count": count}).scalar_one())
            moment = tx.execute(text("SELECT now() - CAST(:age AS interval)"), {"age": age}).scalar_one()
            values = {"account_id": account_id, "first": last - count + 1, "last": last, "type": kind}
            said = {"payload": dumps(payload or ORDER), "traceparent": traceparent, "occurred_at": moment}
            tx.execute(_EVENTS, values | said)
        if hint:
            self._hints.publish(account_id, last)
        return last

    def append_action(self, account_id: UUID, spec: str, controls: str = "{}") -> int:
        with self._engine.begin() as tx:
            last = int(tx.execute(_BUMP, {"account_id": account_id, "count": 1}).scalar_one())
            tx.execute(_ACTION, {"account_id": account_id, "sequence": last, "spec": spec, "controls": controls})
        self._hints.publish(account_id, last)
        return last

    def execute(self, statement: str, **values: Any) -> Any:
        with self._engine.begin() as tx:
            return tx.execute(text(statement), values)

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        """Nobody else reads the table meanwhile."""
        with self._engine.begin() as tx:
            tx.execute(text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
            yield

    def close(self) -> None:
        self._engine.dispose()


@dataclass
class Gateway:
    """A running gateway process."""

    environment: dict[str, str]
    log_path: Path
    open_files: tuple[int, int] | None = None
    """Soft and hard limit it is started with, if not ours."""
    process: Running = field(init=False)

    def start(self) -> "Gateway":
        limits = [str(limit) for limit in self.open_files or ()]
        limited = ("sh", "-c", 'ulimit -Sn "$1"; ulimit -Hn "$2"; shift 2; exec "$@"', "sh", *limits)
        before = limited if self.open_files else ()
        command, environment = ("-m", "stream_gateway"), self.environment
        self.process = start(*command, environment=environment, log=self.log_path, ready=self._is_ready, before=before)
        return self

    def _is_ready(self, _: Running) -> bool:
        try:
            return requests.get(f"{self.events_url}/health/ready", timeout=1).status_code == 200
        except requests.RequestException:
            return False

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.environment['PORT']}"

    @property
    def events_url(self) -> str:
        return f"http://127.0.0.1:{self.environment['EVENTS_PORT']}"

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def metric(self, name: str) -> float:
        """The sum over all labels that contain the text given after the name."""
        exposed = requests.get(f"http://127.0.0.1:{self.environment['HEALTH_PORT']}/metrics", timeout=10).text
        return sum(float(line.rpartition(" ")[2]) for line in exposed.splitlines() if line.startswith(name))

    def send(self, number: int) -> None:
        self.process.send(number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        return self.process.end(number, 20)


StartGateway = Callable[..., Gateway]


@contextmanager
def gateways(platform: Platform, folder: Path) -> Iterator[StartGateway]:
    started: list[Gateway] = []

    def started_gateway(open_files: tuple[int, int] | None = None, **settings: str) -> Gateway:
        ports = {name: str(reserved_port()) for name in ("PORT", "EVENTS_PORT", "HEALTH_PORT")}
        environment = {**platform.environment("stream_gateway"), **ports, **settings}
        started.append(Gateway(environment, folder / f"gateway-{len(started)}.log", open_files))
        return started[-1].start()

    try:
        yield started_gateway
    finally:
        for gateway in started:
            gateway.stop(signal.SIGKILL)
    for gateway in started:
        assert '"level": "error"' not in gateway.log, gateway.log


@asynccontextmanager
async def gateway_behind_proxy(
    platform: Platform, start: StartGateway, variable: str, **settings: str
) -> AsyncIterator[tuple[Gateway, Proxy]]:
    """A gateway that reaches the server the variable names only through a proxy."""
    url = platform.environment("stream_gateway")[variable]
    parts = urlsplit(url)
    assert parts.port
    async with Proxy(parts.port) as proxy:
        address = url.replace(f"{parts.hostname}:{parts.port}", proxy.target)
        yield await asyncio.to_thread(start, **{variable: address}, **settings), proxy


@pytest.fixture
def start_gateway(platform: Platform, tmp_path: Path) -> Iterator[StartGateway]:
    with gateways(platform, tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def gateway(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One for the module, as configured by default, but with quick heartbeats and a retention."""
    with gateways(platform, tmp_path_factory.mktemp("gateway")) as start:
        yield start(HEARTBEAT_SECONDS="1.5", RETENTION_DAYS="7")


@pytest.fixture(scope="module")
def writer(platform: Platform) -> Iterator[Writer]:
    writer = Writer(platform)
    yield writer
    writer.close()


@pytest.fixture(scope="module")
def acme(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture
def account_id(platform: Platform, acme: Organization) -> UUID:
    with platform.admin() as admin:
        return add_account(admin, acme.id)


@dataclass
class Subscriber:
    """What one subscriber has received: its events, and apart from them the words about the stream itself."""

    call: Any
    events: list[trading_pb2.TradingEvent] = field(default_factory=list)
    words: list[trading_pb2.TradingEvent] = field(default_factory=list)

    @property
    def sequences(self) -> list[int]:
        return [event.sequence for event in self.events]

    async def until(self, enough: Callable[["Subscriber"], bool], seconds: float = 30.0) -> "Subscriber":
        async with asyncio.timeout(seconds):
            while not enough(self):
                await self.next()
        return self

    async def next(self) -> trading_pb2.TradingEvent:
        event = await self.call.read()
        if event is grpc.aio.EOF:
            raise EOFError(await self.call.code())
        (self.events if event.type else self.words).append(event)
        return event

    async def received(self, count: int, seconds: float = 30.0) -> list[trading_pb2.TradingEvent]:
        await self.until(lambda one: len(one.events) >= count, seconds)
        return self.events

    async def heard(self, word: str, seconds: float = 30.0) -> trading_pb2.TradingEvent:
        def has(one: Subscriber) -> bool:
            return any(said.WhichOneof("payload") == word for said in one.words)

        await self.until(has, seconds)
        return next(said for said in self.words if said.WhichOneof("payload") == word)

    async def ending(self, seconds: float = 30.0) -> tuple[grpc.StatusCode, str]:
        """Read to the end: with which status and words it came."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self.next()
        except (EOFError, grpc.aio.AioRpcError):
            return await self.call.code(), await self.call.details()


Metadata = Sequence[tuple[str, str]]


def key(value: str) -> Metadata:
    return (("x-api-key", value),)


def bearer(token: str, organization_id: object = None) -> Metadata:
    named = (("x-organization-id", str(organization_id)),) if organization_id else ()
    return (("authorization", f"Bearer {token}"), *named)


@asynccontextmanager
async def connected(target: str, *options: tuple[str, int]) -> AsyncIterator[grpc.aio.Channel]:
    # Subchannels are otherwise shared by all channels to one target, and so would be their failures.
    own = (("grpc.use_local_subchannel_pool", 1), *options)
    async with grpc.aio.insecure_channel(target, options=own) as channel:
        yield channel


async def subscribe(
    channel: grpc.aio.Channel,
    metadata: Metadata,
    account_id: object,
    *,
    types: Sequence[int] = tuple(ALL_TYPES),
    after: int | None = None,
    epoch: str | None = None,
    established: bool = True,
) -> Subscriber:
    """A stream; when `established`, everything that is written from now on comes over it."""
    request = trading_pb2.SubscribeEventsRequest(
        trading_account_id=str(account_id), subscriptions=types, resume_after_sequence=after, resume_epoch=epoch
    )
    call = trading_pb2_grpc.TradingServiceStub(channel).SubscribeEvents(request, metadata=metadata)
    if established:
        async with asyncio.timeout(20):
            await call.initial_metadata()
    return Subscriber(call)


async def outcome(gateway: Gateway, metadata: Metadata, account_id: object, **request: Any) -> grpc.StatusCode | str:
    """`streaming`, or the status that refuses it."""
    async with connected(gateway.target) as channel:
        subscriber = await subscribe(channel, metadata, account_id, established=False, **request)
        reading = asyncio.ensure_future(subscriber.call.initial_metadata())
        ended = asyncio.ensure_future(subscriber.call.code())
        async with asyncio.timeout(20):
            await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)
        if ended.done():
            return ended.result()
        # Initial metadata also comes with a refusal: look whether it is one.
        done, _ = await asyncio.wait([ended], timeout=0.3)
        subscriber.call.cancel()
        return ended.result() if done else "streaming"


def run(scenario: Coroutine[Any, Any, Any] | Awaitable[Any]) -> Any:
    return asyncio.run(scenario)  # type: ignore[arg-type]
