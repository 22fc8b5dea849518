"""Another organization's events beside a crowd: `make bench NAME=stream_crowd`.

One organization has a thousand streams on an account that trades; another has ten streams of its own. The reference is
the same without the crowd. TIP_BENCH_EARLIER=<checkout> measures the gateway of an earlier checkout in the same run.
"""

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from functools import partial
from uuid import UUID

from bench.crowd import STREAMS_A_USER, crowd, imported_from, tenant
from bench.harness import Ratio, meanwhile, pairs, report
from bench.stream_clients import p99, paced
from bench.stream_stage import PAIRS, QUICK, Stage, gateway, stage

STREAMS = 200 if QUICK else 1_000
EVENTS_A_SECOND = 5
LIMITS = {"STREAMS_PER_PRINCIPAL": "20000", "STREAMS_PER_ORGANIZATION": "20000", "HEARTBEAT_SECONDS": "600"}


def trade(on: Stage, account_id: UUID, stop: threading.Event) -> None:
    """Events for the crowd."""
    while not stop.wait(1 / EVENTS_A_SECOND):
        on.append(account_id)


def delivered(on: Stage, streams: int, earlier: str | None) -> Callable[[], float]:
    """The p99 of the other organization's deliveries, in milliseconds."""

    def once() -> float:
        with gateway(on, **LIMITS, **imported_from(earlier)) as server:
            if not streams:
                return p99(asyncio.run(paced(on, server.target, on.account(), 10, 200)))
            crowded = tenant(on, -(-streams // STREAMS_A_USER))
            with crowd(crowded, server.target, streams), meanwhile(partial(trade, on, crowded.account_id)):
                return p99(asyncio.run(paced(on, server.target, on.account(), 10, 200)))

    return once


def measured(on: Stage, name: str, earlier: str | None, goal: float | None) -> Ratio:
    alone, beside = delivered(on, 0, earlier), delivered(on, STREAMS, earlier)
    return pairs(name, alone, beside, unit="ms", count=min(3, PAIRS), goal=goal, at_most=True)


def main() -> None:
    gc.disable()  # of this client, so that it is the servers that are measured
    earlier = os.environ.get("TIP_BENCH_EARLIER")
    name = f"another organization's p99 beside {STREAMS:,} streams with {EVENTS_A_SECOND} events a second / without"
    with stage() as on:
        ratios = [measured(on, f"earlier: {name}", earlier, None)] if earlier else []
        ratios.append(measured(on, name, None, 3.0))
    for ratio in ratios:
        print(f"{ratio.name}: {ratio.subject:,.1f} {ratio.unit}, ratio {ratio.ratio:.2f} {ratio.met}", flush=True)
    if not QUICK:
        report(
            "Stream, crowd",
            ratios,
            versions=("python", "grpcio"),
            command="make bench NAME=stream_crowd",
            notes="From before the commit to the client's read. Gateway, crowd and client share the cores.",
        )


if __name__ == "__main__":
    main()
