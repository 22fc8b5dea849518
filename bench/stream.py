"""The stream gateway against the least a gRPC server here can do: `make bench NAME=stream`.

The reference is a bare grpcio.aio server that writes the same ready bytes to the same clients. NAME="stream throughput"
(or paced, idle, stuck) runs one part; TIP_BENCH_QUICK=1 runs it small, to see that it works, and keeps nothing.
"""

import asyncio
import gc
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any
from uuid import UUID

import grpc
import psycopg2
from sqlalchemy import create_engine, text

from bench.harness import Ratio, pairs, report
from chassis import db, hints, migrations
from tip_local.identity_seed import add_account
from tip_local.postgres import EmbeddedPostgres
from tip_local.processes import free_port
from tip_local.valkey import EmbeddedValkey
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import ROLES, Platform
from trading_proto import trading_pb2

QUICK = bool(os.environ.get("TIP_BENCH_QUICK"))
PAIRS = 1 if QUICK else 5
DELIVERIES = 5_000 if QUICK else 40_000
PACED_S = 3.0 if QUICK else 15.0
IDLE = 500 if QUICK else 10_000
STREAMS_A_CONNECTION = 100
SUBSCRIBE = "/trading.TradingService/SubscribeEvents"
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
    "limit_price": "187.50",
}
_APPEND = text("""
    WITH head AS (
        INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
        VALUES (:account_id, :count, '', '')
        ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + :count
        RETURNING last_sequence
    )
    INSERT INTO intents.account_event (account_id, sequence, id, type, payload, occurred_at)
    SELECT :account_id, last_sequence - :count + number, gen_random_uuid(), 'BROKER_ORDER', :payload, now()
    FROM head, generate_series(1, CAST(:count AS bigint)) AS number
    RETURNING sequence
""")


@dataclass
class Ground:
    """A migrated database with an organization in it, and somebody who trades."""

    platform: Platform
    organization_id: UUID
    api_key: str

    def __post_init__(self) -> None:
        self._engine = create_engine(db.with_driver(self.platform.admin_url), pool_size=2)
        self._hints = hints.LogHeadHints(self.platform.redis_url)

    def account(self) -> UUID:
        with self.platform.admin() as admin:
            return add_account(admin, self.organization_id)

    def append(self, account_id: UUID, count: int = 1, payload: dict[str, Any] | None = None) -> int:
        with self._engine.begin() as tx:
            values = {"account_id": account_id, "count": count, "payload": dumps(payload or ORDER)}
            last = max(row[0] for row in tx.execute(_APPEND, values))
        self._hints.publish(account_id, last)
        return last


@contextmanager
def ground() -> Iterator[Ground]:
    with (
        tempfile.TemporaryDirectory(prefix="tip-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres", fast=True) as postgres,
        EmbeddedValkey(Path(folder) / "valkey", fast=True) as valkey,
    ):
        connection = psycopg2.connect(postgres.url)
        connection.autocommit = True
        connection.cursor().execute("CREATE DATABASE bench")
        connection.close()
        migrations.migrate(postgres.url_of("bench"), dict.fromkeys(ROLES, "for-tests-only"))
        platform = Platform(postgres.url_of("bench"), valkey.url)
        identity = IdentityFixtures(platform.administrator_environment("identity"))
        organization = identity.organization()
        yield Ground(platform, organization.id, organization.api_keys["paper"])
        identity.close()


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    target: str

    @property
    def memory_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


@contextmanager
def server(command: Sequence[str], port: int, environment: dict[str, str]) -> Iterator[Server]:
    process = subprocess.Popen([sys.executable, "-m", *command], env={**os.environ, **environment})
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=30)
    try:
        yield Server(process, f"127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def gateway(on: Ground, **settings: str) -> Iterator[Server]:
    port = free_port()
    own = {"PORT": str(port), "EVENTS_PORT": "0", "LOG_LEVEL": "warning", "STREAMS_PER_PRINCIPAL": "20000"}
    with server(["stream_gateway"], port, {**on.platform.environment("stream_gateway"), **own, **settings}) as started:
        yield started


@contextmanager
def bare() -> Iterator[Server]:
    port = free_port()
    with server(["bench.stream", "bare", str(port)], port, {}) as started:
        yield started


async def serve_bare(port: int) -> None:
    """The reference: once told to, it writes as many ready bytes to every stream as the stream asked for."""
    go = asyncio.Event()
    message = sample()

    async def stream(request: bytes, context: Any) -> None:
        await context.send_initial_metadata(())
        await go.wait()
        for _ in range(int(request)):
            await context.write(message)

    async def begin(_request: bytes, _context: Any) -> bytes:
        go.set()
        await asyncio.sleep(0)
        go.clear()
        return b""

    methods = {
        "Stream": grpc.unary_stream_rpc_method_handler(stream),
        "Begin": grpc.unary_unary_rpc_method_handler(begin),
    }
    listening = grpc.aio.server()
    listening.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Bare", methods),))
    listening.add_insecure_port(f"127.0.0.1:{port}")
    await listening.start()
    await listening.wait_for_termination()


def sample() -> bytes:
    """An event as the gateway sends it."""
    event = trading_pb2.TradingEvent(
        event_id=ORDER["intent_id"],
        sequence=1_000,
        trading_account_id=ORDER["intent_id"],
        type="EVENT_TYPE_BROKER_ORDER",
    )
    event.occurred_at.GetCurrentTime()
    for name, value in ORDER.items():
        setattr(event.broker_order, name, value)
    return event.SerializeToString()


def request(account_id: UUID) -> bytes:
    return trading_pb2.SubscribeEventsRequest(
        trading_account_id=str(account_id), subscriptions=["EVENT_TYPE_BROKER_ORDER"]
    ).SerializeToString()


@asynccontextmanager
async def streams(
    target: str, method: str, body: bytes, count: int, metadata: Sequence[tuple[str, str]] = ()
) -> AsyncIterator[list[Any]]:
    """Open and established streams that carry bytes, a hundred to a connection."""
    async with AsyncExitStack() as stack:
        calls: list[Any] = []
        for start in range(0, count, STREAMS_A_CONNECTION):
            options = (("grpc.use_local_subchannel_pool", 1),)
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(target, options=options))
            opened = [
                channel.unary_stream(method)(body, metadata=metadata)
                for _ in range(min(STREAMS_A_CONNECTION, count - start))
            ]
            await asyncio.gather(*(call.initial_metadata() for call in opened))
            if method == SUBSCRIBE:
                await asyncio.gather(*(call.read() for call in opened))  # the word that says where it begins
            calls += opened
        yield calls


async def read_all(calls: Sequence[Any], each: int) -> float:
    """Deliveries a second, from the beginning to the last of `each` on every stream."""

    async def read(call: Any) -> None:
        for _ in range(each):
            await call.read()

    began = time.perf_counter()
    await asyncio.gather(*(read(call) for call in calls))
    return len(calls) * each / (time.perf_counter() - began)


def bare_throughput(subscribers: int) -> float:
    async def measure(target: str) -> float:
        each = DELIVERIES // subscribers
        opened = streams(target, "/bench.Bare/Stream", str(each).encode(), subscribers)
        async with opened as calls, grpc.aio.insecure_channel(target) as channel:
            await channel.unary_unary("/bench.Bare/Begin")(b"")
            return await read_all(calls, each)

    with bare() as started:
        return asyncio.run(measure(started.target))


def gateway_throughput(on: Ground, subscribers: int) -> float:
    account_id, each = on.account(), DELIVERIES // subscribers

    async def measure(target: str) -> float:
        metadata = (("x-api-key", on.api_key),)
        async with streams(target, SUBSCRIBE, request(account_id), subscribers, metadata) as calls:
            await asyncio.to_thread(on.append, account_id, each)
            return await read_all(calls, each)

    with gateway(on, HEARTBEAT_SECONDS="600") as started:
        return asyncio.run(measure(started.target))


async def paced(on: Ground, target: str, account_id: UUID, subscribers: int, a_second: int) -> list[float]:
    """Milliseconds from before the commit to each subscriber, at this many deliveries a second over all."""
    latencies: list[float] = []
    written: dict[int, float] = {}
    total = int(PACED_S * a_second / subscribers)

    async def read(call: Any) -> None:
        for _ in range(total):
            event = trading_pb2.TradingEvent.FromString(await call.read())
            latencies.append((time.perf_counter() - written[event.sequence]) * 1000)

    async with streams(target, SUBSCRIBE, request(account_id), subscribers, (("x-api-key", on.api_key),)) as calls:
        last = await asyncio.to_thread(_head, on, account_id)
        reading = asyncio.gather(*(read(call) for call in calls))
        next_at = time.perf_counter()
        for number in range(1, total + 1):
            next_at += subscribers / a_second
            await asyncio.sleep(max(0.0, next_at - time.perf_counter()))
            written[last + number] = time.perf_counter()
            await asyncio.to_thread(on.append, account_id)
        await reading
    return sorted(latencies)


def _head(on: Ground, account_id: UUID) -> int:
    with on.platform.admin() as admin:
        statement = text("SELECT last_sequence FROM intents.account_head WHERE account_id = :id")
        return int(admin.execute(statement, {"id": account_id}).scalar() or 0)


def p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def goal(name: str, unit: str, most: float, found: Sequence[float]) -> Ratio:
    """An absolute goal: it is the reference itself."""
    spread = (max(found) - min(found)) / most
    return Ratio(name, unit, most, statistics.median(found), spread, goal=1.0, at_most=True)


def throughput(on: Ground) -> list[Ratio]:
    return [
        pairs(
            f"delivered, {subscribers} subscribers / bare stream of ready bytes",
            lambda subscribers=subscribers: bare_throughput(subscribers),  # type: ignore[misc]
            lambda subscribers=subscribers: gateway_throughput(on, subscribers),  # type: ignore[misc]
            unit="a second",
            count=PAIRS,
            goal=least,
        )
        for subscribers, least in ((100, 0.8), (500, 0.7))
    ]


def pacing(on: Ground) -> list[Ratio]:
    def once() -> float:
        with gateway(on, HEARTBEAT_SECONDS="600") as started:
            return p99(asyncio.run(paced(on, started.target, on.account(), 100, 1_000)))

    return [goal("1 000 deliveries a second, 100 subscribers, p99", "ms", 30.0, [once() for _ in range(min(3, PAIRS))])]


def idle(on: Ground) -> list[Ratio]:
    async def next_event(calls: Sequence[Any], account_id: UUID) -> float:
        took: list[float] = []

        async def read(call: Any) -> None:
            await call.read()
            took.append(time.perf_counter() - began)

        reading = asyncio.gather(*(read(call) for call in calls))
        await asyncio.sleep(1)
        began = time.perf_counter()
        await asyncio.to_thread(on.append, account_id)
        await reading
        return p99(took)

    async def measure(started: Server) -> tuple[float, list[float]]:
        account_id, metadata = on.account(), (("x-api-key", on.api_key),)
        async with streams(started.target, SUBSCRIBE, request(account_id), 10, metadata):
            before = started.memory_kib
        async with streams(started.target, SUBSCRIBE, request(account_id), IDLE, metadata) as calls:
            each = (started.memory_kib - before) / IDLE
            return each, [await next_event(calls, account_id) for _ in range(min(3, PAIRS))]

    with gateway(on, HEARTBEAT_SECONDS="600") as started:
        memory, latencies = asyncio.run(measure(started))
    return [
        goal(f"{IDLE:,} idle streams, memory of each", "KiB", 32.0, [memory]),
        goal(f"{IDLE:,} idle streams, next event to all, p99", "s", 1.0, latencies),
    ]


def stuck(on: Ground) -> list[Ratio]:
    """The healthy ones' p99 beside a hundred that do not read, and without them."""

    def healthy(stuck_ones: int) -> Callable[[], float]:
        def once() -> float:
            with gateway(on, HEARTBEAT_SECONDS="600", STUCK_SECONDS="600", BUFFER_EVENTS="64") as started:
                account_id = on.account()
                with not_reading(on, started.target, account_id, stuck_ones):
                    return p99(asyncio.run(paced(on, started.target, account_id, 100, 1_000)))

        return once

    name = "healthy p99 beside 100 stuck subscribers / without"
    return [pairs(name, healthy(0), healthy(100), unit="ms", count=PAIRS, goal=1.1, at_most=True)]


@contextmanager
def not_reading(on: Ground, target: str, account_id: UUID, count: int) -> Iterator[None]:
    """Subscribers in a process of their own, which have taken all that fits and take no more."""
    if not count:
        yield
        return
    command = [sys.executable, "-m", "bench.stream", "not-reading", target, str(account_id), str(count)]
    environment = {**os.environ, "TIP_BENCH_KEY": on.api_key}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        for _ in range(4):
            on.append(account_id, 100, {**ORDER, "reason": secrets.token_hex(2_000)})
            time.sleep(0.5)
        yield
    finally:
        process.kill()
        process.wait()


async def do_not_read(target: str, account_id: str, count: int) -> None:
    async with AsyncExitStack() as stack:
        # Small windows: what a client takes without reading is otherwise some megabytes.
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.http2.bdp_probe", 0))
        calls = []
        for _ in range(count):
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(target, options=options))
            metadata = (("x-api-key", os.environ["TIP_BENCH_KEY"]),)
            calls.append(channel.unary_stream(SUBSCRIBE)(request(UUID(account_id)), metadata=metadata))
        await asyncio.gather(*(call.initial_metadata() for call in calls))
        print("ready", flush=True)
        await asyncio.sleep(3_600)


PARTS: dict[str, Callable[[Ground], list[Ratio]]] = {
    "throughput": throughput, "paced": pacing, "idle": idle, "stuck": stuck,
}  # fmt: skip


NOTES = {
    "throughput": "Server and clients share the cores; one client process; both servers are started anew for each run.",
    "paced": "From before the commit to the client's read. The goal stands as the reference; the median of three runs.",
    "idle": "Resident memory of the gateway; from before the commit to the clients' reads, the median of three events.",
    "stuck": "The stuck ones take all that fits into their windows and no more, in a process of their own.",
}


def main(chosen: Sequence[str]) -> None:
    gc.disable()  # of this client, so that it is the servers that are measured
    with ground() as on:
        for part in chosen or PARTS:
            ratios = PARTS[part](on)
            for one in ratios:
                print(f"{one.name}: {one.subject:,.1f} {one.unit}, ratio {one.ratio:.2f} {one.met}", flush=True)
            if not QUICK:
                keep(part, ratios)


def keep(part: str, ratios: list[Ratio]) -> None:
    report(
        f"Stream, {part}",
        ratios,
        versions=("python", "grpcio", "protobuf"),
        command=f'make bench NAME="stream {part}"',
        notes=NOTES[part],
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["bare", port]:
            asyncio.run(serve_bare(int(port)))
        case ["not-reading", target, account_id, count]:
            asyncio.run(do_not_read(target, account_id, int(count)))
        case parts:
            main(parts)
