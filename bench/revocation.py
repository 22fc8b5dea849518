"""How long a revoked key keeps its stream while another organization has thousands open.

    make bench NAME=revocation                       1 000 and 5 000 streams
    make bench NAME="revocation 1000"                that many
    TIP_BENCH_EARLIER=<checkout> make bench ...      the gateway of an earlier checkout in the same run, too

The goal is the five seconds of the contract for the worst of some revocations.
"""

import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import grpc
from sqlalchemy import text

from bench.crowd import STREAMS_A_USER, crowd, imported_from, tenant
from bench.harness import Ratio, report
from bench.stream_clients import SUBSCRIBE, request
from bench.stream_stage import QUICK, Server, Stage, gateway, stage
from chassis import keys
from tip_testing.identity_fixtures import IdentityFixtures

SIZES = (200,) if QUICK else (1_000, 5_000)
REVOCATIONS = 2 if QUICK else 6
PROMISE_S = 5.0
GIVE_UP_S = 90.0
LIMITS = {"STREAMS_PER_PRINCIPAL": "20000", "STREAMS_PER_ORGANIZATION": "20000", "HEARTBEAT_SECONDS": "600"}


@contextmanager
def loaded(on: Stage, streams: int, earlier: str | None = None) -> Iterator[Server]:
    """A gateway at which another organization has that many streams open."""
    with ExitStack() as stack:
        server = stack.enter_context(gateway(on, **LIMITS, **imported_from(earlier)))
        if streams:
            other = tenant(on, -(-streams // STREAMS_A_USER))
            stack.enter_context(crowd(other, server.target, streams))
            time.sleep(3)  # until each of them has been verified again at least once
        yield server


async def revoke(on: Stage, server: Server, identity: IdentityFixtures) -> float:
    """Seconds from the commit of the revocation to the end of the stream."""
    key, account_id = identity.key(on.organization_id, "paper"), on.account()
    async with grpc.aio.insecure_channel(server.target) as channel:
        call = channel.unary_stream(SUBSCRIBE)(request(account_id), metadata=(("x-api-key", key),))
        await call.read()
        await asyncio.sleep(random.uniform(0, 2))  # anywhere between two re-checks
        await asyncio.to_thread(_disable, on, key)
        began = time.perf_counter()
        try:
            code = await asyncio.wait_for(call.code(), GIVE_UP_S)
        except TimeoutError:
            return GIVE_UP_S
        took = time.perf_counter() - began
        assert code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNAVAILABLE), code
        return took


def _disable(on: Stage, key: str) -> None:
    with on.platform.admin() as admin:
        admin.execute(text("UPDATE identity.api_key SET disabled = true WHERE prefix = :p"), {"p": keys.prefix(key)})


def worst(on: Stage, identity: IdentityFixtures, streams: int, earlier: str | None = None) -> float:
    with loaded(on, streams, earlier) as server:
        found = [asyncio.run(revoke(on, server, identity)) for _ in range(REVOCATIONS)]
    shown = ", ".join(f"{seconds:.2f}" for seconds in found)
    print(f"  {streams:,} streams{' (earlier)' if earlier else ''}: median {statistics.median(found):.2f} s of {shown}")
    return max(found)


def main(sizes: Sequence[int]) -> None:
    earlier = os.environ.get("TIP_BENCH_EARLIER")
    ratios = []
    with stage() as on:
        identity = IdentityFixtures(on.platform.administrator_environment("identity"))
        for streams in (0, *sizes):
            if earlier:
                before = worst(on, identity, streams, earlier)
                ratios.append(Ratio(f"earlier: {_name(streams)}", "s", PROMISE_S, before, 0.0))
            ratios.append(
                Ratio(_name(streams), "s", PROMISE_S, worst(on, identity, streams), 0.0, goal=1.0, at_most=True)
            )
        identity.close()
    if not QUICK:
        report(
            "Revocation",
            ratios,
            versions=("python", "grpcio"),
            command="make bench NAME=revocation",
            notes=f"From the commit to the client's end of the stream, the worst of {REVOCATIONS}. The promise stands "
            "as the reference. The other organization's streams show 200 headers for each token and are read by a "
            "process of their own.",
        )


def _name(streams: int) -> str:
    return f"revoked key's stream ends, {streams:,} streams of another organization"


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or SIZES)
