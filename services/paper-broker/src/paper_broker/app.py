"""The only place where things are wired: storage, market, stream and server in one process and one event loop."""

import asyncio
import gc
import logging
import secrets
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

from aiohttp import web

from paper_broker.config import BadConfig, Config
from paper_broker.connections import Runner
from paper_broker.faults import Faults, Settings
from paper_broker.journal import Journal
from paper_broker.model import Exchange, Rules
from paper_broker.model.prices import Prices, Tape, Walk
from paper_broker.routes import BROKER, HUB, OPERATOR_TOKEN, errors, operators_only, routes
from paper_broker.store import InUse, Store
from paper_broker.stream import Hub
from paper_broker.usecases import Broker

LARGEST_BODY = 65_536
SHUTDOWN_SECONDS = 0.5
TRICKLE_SECONDS, NO_TRICKLE_SECONDS = 0.005, 0.1
# Orders live for the life of the process: looking through them for cycles every few hundred requests buys nothing.
GC_THRESHOLDS = (50_000, 20, 50)
JOURNAL = web.AppKey("journal", Journal)
STORE = web.AppKey("store", Store)
log = logging.getLogger("paper_broker")


def open_store(config: Config) -> tuple[Store, str]:
    """The storage and the seed of its data."""
    try:
        store = Store(config.data, in_memory=config.in_memory)
    except InUse as error:
        raise BadConfig(f"PAPER_BROKER_DATA is {error}, which another paper broker is using") from None
    seed = store.seed(config.seed, secrets.token_hex(8))
    if config.seed not in (None, seed):
        raise BadConfig(f"PAPER_BROKER_SEED is {config.seed!r}, but the data in {config.data} was made with {seed!r}")
    return store, seed


def build_exchange(config: Config, seed: str, store: Store) -> Exchange:
    walk = Walk(seed, config.quote_size, moving=config.prices == "walk")
    rules = Rules(seed, config.cash, timedelta(seconds=config.day_seconds))
    exchange = Exchange(rules, Prices(walk, Tape(config.tape())))
    store.load(exchange.state)
    exchange.start()
    return exchange


def create_app(config: Config) -> web.Application:
    """Needs a running event loop."""
    store, seed = open_store(config)
    settings = Settings(
        hang_seconds=config.hang_seconds,
        slow_seconds=config.slow_seconds,
        rate_limit_first=config.rate_limit_first,
    )
    faults = Faults(seed, settings)
    hub = Hub(faults)
    journal = Journal(store, hub.publish)
    loop = asyncio.get_running_loop()

    def later(work: Callable[[], None]) -> object:
        return loop.call_later(config.settle_seconds, work)

    broker = Broker(build_exchange(config, seed, store), store, journal, faults, later)
    broker.recover()
    app = web.Application(middlewares=[errors, operators_only], client_max_size=LARGEST_BODY)
    app[BROKER], app[HUB], app[JOURNAL], app[STORE] = broker, hub, journal, store
    app[OPERATOR_TOKEN] = config.operator_token
    app.add_routes(routes)
    app.on_shutdown.append(lambda app: app[HUB].close())
    return app


async def tick_forever(broker: Broker, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        await broker.tick()


async def trickle_forever(broker: Broker) -> None:
    while True:
        await asyncio.sleep(TRICKLE_SECONDS if broker.is_trickling else NO_TRICKLE_SECONDS)
        await broker.trickle()


async def serve(config: Config) -> None:
    """Serve until SIGTERM or SIGINT. An error of the journal or the market ends the process with that error."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    app = create_app(config)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    loops: list[Coroutine[Any, Any, Any]] = [app[JOURNAL].run(), trickle_forever(app[BROKER]), stop.wait()]
    if config.tick_seconds:
        loops.append(tick_forever(app[BROKER], config.tick_seconds))
    tasks = [asyncio.create_task(work) for work in loops]
    runner = Runner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, config.host, config.port, backlog=1024).start()
        log.info("paper_broker_started address=%s data=%s", runner.addresses[0], config.data)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await runner.cleanup()
        await _finish(app, tasks)


async def _finish(app: web.Application, tasks: list["asyncio.Task[Any]"]) -> None:
    """After the last answer: stop the loops, write what is left, and let an error that ended one of them out."""
    failed = [task.exception() for task in tasks if task.done() and not task.cancelled()]
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task
    for error in filter(None, failed):
        raise error
    await app[JOURNAL].close()
    app[STORE].close()
    log.info("paper_broker_stopped")
