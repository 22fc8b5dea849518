"""The stream gateway against the least a gRPC server here can do: `make bench NAME=stream`.

The reference is a bare grpcio.aio server that writes the same ready bytes to the same clients. NAME="stream throughput"
(or paced, idle, stuck) runs one part; TIP_BENCH_QUICK=1 runs it small, to see that it works, and keeps nothing.
"""

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import grpc

from bench.harness import Ratio, pairs, report
from bench.stream_clients import SUBSCRIBE, p99, paced, read_all, request, streams
from bench.stream_reference import bare
from bench.stream_stage import PAIRS, QUICK, Server, Stage, gateway, stage
from bench.stream_stuck import not_reading

DELIVERIES = 5_000 if QUICK else 40_000
IDLE = 500 if QUICK else 10_000


def bare_throughput(subscribers: int) -> float:
    async def measure(target: str) -> float:
        events = DELIVERIES // subscribers
        opened = streams(target, "/bench.Bare/Stream", str(events).encode(), subscribers)
        async with opened as calls, grpc.aio.insecure_channel(target) as channel:
            await channel.unary_unary("/bench.Bare/Begin")(b"")
            return await read_all(calls, events)

    with bare() as started:
        return asyncio.run(measure(started.target))


def gateway_throughput(on: Stage, subscribers: int) -> float:
    account_id, events = on.account(), DELIVERIES // subscribers

    async def measure(target: str) -> float:
        metadata = (("x-api-key", on.api_key),)
        async with streams(target, SUBSCRIBE, request(account_id), subscribers, metadata) as calls:
            await asyncio.to_thread(on.append, account_id, events)
            return await read_all(calls, events)

    with gateway(on, HEARTBEAT_SECONDS="600") as started:
        return asyncio.run(measure(started.target))


def goal(name: str, unit: str, most: float, found: Sequence[float]) -> Ratio:
    """An absolute goal: it is the reference itself."""
    spread = (max(found) - min(found)) / most
    return Ratio(name, unit, most, statistics.median(found), spread, goal=1.0, at_most=True)


def throughput(on: Stage) -> list[Ratio]:
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


def pacing(on: Stage) -> list[Ratio]:
    def once() -> float:
        with gateway(on, HEARTBEAT_SECONDS="600") as started:
            return p99(asyncio.run(paced(on, started.target, on.account(), 100, 1_000)))

    return [goal("1 000 deliveries a second, 100 subscribers, p99", "ms", 30.0, [once() for _ in range(min(3, PAIRS))])]


def idle(on: Stage) -> list[Ratio]:
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


def stuck(on: Stage) -> list[Ratio]:
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


PARTS: dict[str, Callable[[Stage], list[Ratio]]] = {
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
    with stage() as on:
        for part in chosen or PARTS:
            ratios = PARTS[part](on)
            for row in ratios:
                print(f"{row.name}: {row.subject:,.1f} {row.unit}, ratio {row.ratio:.2f} {row.met}", flush=True)
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
    main(sys.argv[1:])
