"""The one path every event takes to every subscriber, whatever the transport."""

import asyncio
from collections.abc import Awaitable, Callable

from prometheus_client import Counter

from stream_gateway import meters, schemas
from stream_gateway.hub import Stream
from stream_gateway.log import Log
from stream_gateway.schemas import Entry

Write = Callable[[bytes], Awaitable[object]]


async def deliver(stream: Stream, log: Log, write: Write, form: Callable[[Entry], bytes], heartbeat_s: float) -> None:
    """Write the stream's events in order for as long as it lives; raises the Ending when it is to end."""
    loop = asyncio.get_running_loop()
    stream.schedule_heartbeat(loop.time(), heartbeat_s, first=True)
    delivered = meters.DELIVERED.labels(stream.transport)
    if stream.replay_until is None:
        # Where it begins, so that it can be resumed before its first event; and proxies let the answer through at once.
        await stream.acquire_write()
        await write(form(stream.heartbeat(loop.time())))
    while True:
        if stream.cut and stream.ending:
            raise stream.ending  # before anything that could block
        if stream.replay_until is not None and stream.position >= stream.replay_until:
            stream.replay_until = None
            await stream.acquire_write()
            await write(form(schemas.replay_complete(stream.hub.account_id, stream.hub.epoch, stream.position)))
        if loop.time() >= stream.heartbeat_at:
            stream.schedule_heartbeat(loop.time(), heartbeat_s)
            await stream.acquire_write()
            await write(form(stream.heartbeat(loop.time())))
        entries = stream.hub.after(stream.position)
        if stream.ending and not entries:
            raise stream.ending  # everything that is buffered has been written
        if entries is None:
            entries = await _from_log(stream, log)
        if entries:
            await _write_all(stream, entries, write, form, delivered)
        elif not stream.ending:
            await stream.wait()


async def _write_all(
    stream: Stream, entries: list[Entry], write: Write, form: Callable[[Entry], bytes], delivered: Counter
) -> None:
    types, written = stream.types, 0
    try:
        for entry in entries:
            if entry.type in types:
                await stream.acquire_write()
                await write(form(entry))
                written += 1
            stream.position = entry.sequence
    finally:
        delivered.inc(written)


async def _from_log(stream: Stream, log: Log) -> list[Entry]:
    """The stream is behind what is kept in memory: it reads on by itself, and the others do not notice."""
    stream.reading = True
    try:
        until, entries = await log.page(stream.hub, stream.position)
    finally:
        stream.reading = False
    if not entries:
        stream.position = max(stream.position, until)
    return entries
