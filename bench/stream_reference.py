"""The reference of the stream benchmarks: a bare grpcio.aio server that writes ready bytes."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from bench.stream_stage import ORDER, Server, server
from tip_local.processes import free_port
from trading_proto import trading_pb2


@contextmanager
def bare() -> Iterator[Server]:
    port = free_port()
    with server(["bench.stream_reference", str(port)], port, {}) as started:
        yield started


async def serve_bare(port: int) -> None:
    """The reference: after `Begin` it writes to every stream as many ready messages as the stream requested."""
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


if __name__ == "__main__":
    asyncio.run(serve_bare(int(sys.argv[1])))
