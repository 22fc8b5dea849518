"""Subscribers in a process of their own: when each intent's acceptance was received.

python -m bench.endtoend_streams TARGET API_KEY FILE ACCOUNT...
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import grpc.aio

from trading_proto import trading_pb2, trading_pb2_grpc

READY = "ready"


@contextmanager
def subscribers(target: str, api_key: str, file: Path, accounts: Sequence[str]) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.endtoend_streams", target, api_key, str(file), *accounts]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def received(file: Path) -> dict[str, float]:
    """The moment at which the first event of an order was read, by intent."""
    if not file.exists():
        return {}
    return {intent: float(moment) for intent, moment in (line.split() for line in file.read_text().splitlines())}


async def _subscribe(
    stub: trading_pb2_grpc.TradingServiceStub, api_key: str, account: str, file: TextIO, open_: asyncio.Semaphore
) -> None:
    request = trading_pb2.SubscribeEventsRequest(
        trading_account_id=account,
        subscriptions=[trading_pb2.EVENT_TYPE_BROKER_ORDER, trading_pb2.EVENT_TYPE_INTENT_ACTION],
        resume_after_sequence=0,
    )
    seen: set[str] = set()
    async for event in stub.SubscribeEvents(request, metadata=[("x-api-key", api_key)]):
        if event.HasField("replay_complete"):
            open_.release()
        if event.HasField("broker_order") and event.broker_order.intent_id not in seen:
            seen.add(event.broker_order.intent_id)
            file.write(f"{event.broker_order.intent_id} {time.time()}\n")


async def _run(target: str, api_key: str, path: str, accounts: Sequence[str]) -> None:
    open_ = asyncio.Semaphore(0)
    with Path(path).open("w", buffering=1) as file:
        async with grpc.aio.insecure_channel(target) as channel, asyncio.TaskGroup() as streams:
            stub = trading_pb2_grpc.TradingServiceStub(channel)  # type: ignore[no-untyped-call]
            for account in accounts:
                streams.create_task(_subscribe(stub, api_key, account, file, open_))
            for _ in accounts:
                await open_.acquire()
            print(READY, flush=True)


if __name__ == "__main__":
    target, api_key, path, *accounts = sys.argv[1:]
    asyncio.run(_run(target, api_key, path, accounts))
