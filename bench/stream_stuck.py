"""Subscribers that do not read, in a process of their own."""

import asyncio
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from uuid import UUID

import grpc

from bench.stream_clients import SUBSCRIBE, request
from bench.stream_stage import ORDER, Stage


@contextmanager
def not_reading(on: Stage, target: str, account_id: UUID, count: int) -> Iterator[None]:
    """Subscribers in a process of their own, which have taken all that fits and take no more."""
    if not count:
        yield
        return
    command = [sys.executable, "-m", "bench.stream_stuck", target, str(account_id), str(count)]
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


if __name__ == "__main__":
    asyncio.run(do_not_read(sys.argv[1], sys.argv[2], int(sys.argv[3])))
