"""The gateway, wired: one event loop with a gRPC server, an HTTP server and what feeds them. Never forked."""

import asyncio
import contextlib
import gc
import sys
import threading
from collections.abc import AsyncIterator

import grpc
from aiohttp import web
from grpc_health.v1 import health, health_pb2

from chassis import hints, http_rules, logs
from stream_gateway import files
from stream_gateway.config import Config
from stream_gateway.gateway import Gateway
from stream_gateway.routes import health as probes
from stream_gateway.routes import rpc, sse
from stream_gateway.routes.connections import Runner

log = logs.get(__name__)

_STOP_POLL_S = 0.1
_HEALTH_S = 0.5
_GARBAGE_THRESHOLDS = (20_000, 5, 1_000)


def serve(config: Config, stop: threading.Event) -> None:
    """Serve until `stop` is set, then drain."""
    try:
        asyncio.run(_serve(files.fit(config), stop))
    except (OSError, RuntimeError) as error:
        log.error("cannot_serve", error=str(error))
        sys.exit(1)


async def _serve(config: Config, stop: threading.Event) -> None:
    # Ten thousand streams are a million long-lived objects: scanning them often costs a tenth of the time, and half a
    # second at once. So young objects are collected in small numbers, and old ones hardly ever.
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    gateway = Gateway(config)
    healthy = health.aio.HealthServicer()
    async with _listening(gateway, healthy) as server:
        background = [
            asyncio.create_task(work)
            for work in (
                gateway.pump.run(),
                hints.listen(config.queues, gateway.pump.receive_hints),
                gateway.watch.tick_for_ever(),
                gateway.rechecks.run(),
                gateway.counts.publish_for_ever(),
                _report_health(gateway, healthy),
            )
        ]
        stopping = asyncio.create_task(_wait_for(stop))
        # None of them ever returns: one that does has failed in a way nobody foresaw, and the process must not go on.
        done, _ = await asyncio.wait([stopping, *background], return_when=asyncio.FIRST_COMPLETED)
        await _drain(gateway, healthy, server)
        for task in background:
            task.cancel()
        failed = [task.exception() for task in done if task is not stopping]
    gateway.close()
    if failed:
        raise RuntimeError(f"stopped by {failed[0]!r}")


@contextlib.asynccontextmanager
async def _listening(gateway: Gateway, healthy: health.aio.HealthServicer) -> AsyncIterator[grpc.aio.Server]:
    config = gateway.config
    # Without `maximum_concurrent_rpcs`, which is one number for everybody: each method counts its own calls.
    server = grpc.aio.server(options=_options(config))
    server.add_generic_rpc_handlers((rpc.handlers(gateway), probes.handlers(healthy)))
    if config.reflection:
        _add_reflection(server)
    server.add_insecure_port(f"{config.host}:{config.port}")
    await server.start()
    runner = Runner(sse.create(gateway, config.cors_origins), handler_cancellation=True)
    await runner.setup()
    if config.events_port:
        await web.TCPSite(runner, config.host, config.events_port, reuse_address=True).start()
    log.info("listening", grpc=config.port, events=config.events_port)
    try:
        yield server
    finally:
        await runner.cleanup()


def _add_reflection(server: grpc.aio.Server) -> None:
    from grpc_reflection.v1alpha import reflection

    names = (rpc.SERVICE, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)


def _options(config: Config) -> list[tuple[str, int]]:
    return [
        ("grpc.keepalive_time_ms", int(config.keepalive_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", int(config.keepalive_timeout_seconds * 1000)),
        # What counts in the end is this one, a minute by default: without it a half-open connection lives that long.
        ("grpc.http2.ping_timeout_ms", int(config.keepalive_timeout_seconds * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # Clients may ping as often as this; more often is refused as too many pings.
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.max_receive_message_length", 65_536),
        ("grpc.server_handshake_timeout_ms", int(http_rules.HEADERS_S * 1000)),
        ("grpc.max_metadata_size", 16_384),
        ("grpc.so_reuseport", 0),  # a second gateway on the same port is a mistake and not a helper
    ]


async def _wait_for(stop: threading.Event) -> None:
    # Polled: a signal handler sets it, outside the event loop.
    while not stop.is_set():
        await asyncio.sleep(_STOP_POLL_S)


async def _report_health(gateway: Gateway, healthy: health.aio.HealthServicer) -> None:
    while True:
        status = health_pb2.HealthCheckResponse.SERVING if gateway.ready else health_pb2.HealthCheckResponse.NOT_SERVING
        for name in (health.OVERALL_HEALTH, rpc.SERVICE):
            await healthy.set(name, status)
        await asyncio.sleep(_HEALTH_S)


async def _drain(gateway: Gateway, healthy: health.aio.HealthServicer, server: grpc.aio.Server) -> None:
    """Refuse new streams and send clients to another gateway, while the open ones finish what is buffered."""
    log.info("draining", streams=len(gateway.streams))
    await healthy.enter_graceful_shutdown()
    stopping = asyncio.create_task(server.stop(gateway.config.drain_seconds + 1))
    await gateway.drain()
    await stopping
