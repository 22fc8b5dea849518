"""The only place where things are wired: session, tables, stream and server in one process and one event loop."""

import asyncio
import logging
import signal
from collections.abc import Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg2
from aiohttp import web

from tip_broker_fix.gateway import credentials, store
from tip_broker_fix.gateway.config import Config
from tip_broker_fix.gateway.engine import Engine
from tip_broker_fix.gateway.reader import Reader
from tip_broker_fix.gateway.routes import CONFIG, ENGINE, HUB, READER, errors, routes
from tip_broker_fix.gateway.stream import Hub

LARGEST_BODY = 16_384
SHUTDOWN_SECONDS = 0.5
FORGET_SECONDS = 600.0
log = logging.getLogger("fix_gateway")


def create_app(config: Config) -> web.Application:
    """Needs a running event loop."""
    hub = Hub(partial(credentials.check, config.account_key))
    app = web.Application(middlewares=[errors], client_max_size=LARGEST_BODY)
    app[CONFIG], app[HUB], app[READER] = config, hub, Reader(config.database_url)
    app[ENGINE] = Engine(config, hub.publish, hub.close)
    app.add_routes(routes)
    app.on_shutdown.append(lambda app: app[HUB].close())
    return app


async def forget_forever(reader: Reader) -> None:
    """Messages that nobody looks for any more."""
    while True:
        with suppress(psycopg2.Error):
            while await reader.read(store.forget_messages, datetime.now(UTC)):
                pass
        await asyncio.sleep(FORGET_SECONDS)


async def serve(config: Config) -> None:
    """Serve until SIGTERM or SIGINT; an error of the session's own code ends the process."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    app = create_app(config)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    loops: list[Coroutine[Any, Any, Any]] = [app[ENGINE].run(), forget_forever(app[READER]), stop.wait()]
    tasks = [asyncio.create_task(work) for work in loops]
    try:
        await web.TCPSite(runner, config.host, config.port, backlog=1024).start()
        log.info("fix_gateway_started address=%s session=%s", runner.addresses[0], config.session)
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await app[ENGINE].close()
        await runner.cleanup()
        app[READER].close()
    for task in done:
        task.result()
