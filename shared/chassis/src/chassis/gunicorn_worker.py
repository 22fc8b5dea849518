"""gunicorn's process with our connections and threads: what `chassis.gunicorn_conf` names as its worker class."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from gunicorn.workers.gasgi import ASGIWorker

from chassis.asgi import Bridge
from chassis.fair_queue import SWITCH_S
from chassis.http_connection import Connection

_SHUTDOWN_POLL_S = 0.05
QUIET_POLLS = 10  # after its last request a stopping worker waits so many polls for one more on an open connection


class Worker(ASGIWorker):  # type: ignore[misc]
    """gunicorn's worker, but for four things.

    It would accept every connection that waits, so that one worker may get them all: ours accepts one at a time. It
    would wait for idle connections until it is killed: ours waits for requests. Its connections know no limits of time:
    ours do. And it starts the bridge's threads.
    """

    _queueing = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unsent: set[Connection] = set()  # connections that are closed once the rest of their answer is sent

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Threads are set: they are the bridge's."""

    def _setup_event_loop(self) -> None:
        super()._setup_event_loop()
        self.loop.create_server = partial(self._listen, self.loop.create_server)

    def _listen(self, create_server: Callable[..., Any], _protocol: Any, **options: Any) -> Any:
        return create_server(partial(Connection, self), backlog=1, **options)

    def notify(self) -> None:
        if self.servers and not self._queueing:
            self._queueing = True  # the backlog above was meant for the loop, and reached the kernel too
            for listener in self.sockets:
                listener.sock.listen(self.cfg.backlog)
        super().notify()

    def load_wsgi(self) -> None:
        """An app without a front of its own gets a plain `Bridge`."""
        sys.setswitchinterval(SWITCH_S)
        app = self.app.wsgi()
        extensions = getattr(app, "extensions", {})
        parts = (extensions.get(name) for name in ("callers", "match_route", "cors"))
        front = app if isinstance(app, Bridge) else Bridge(app, *parts)
        self.asgi: Bridge = front.start(self.cfg.threads)

    async def _stop_accepting(self, loop: asyncio.AbstractEventLoop) -> None:
        """What is accepted becomes a connection a few turns of the loop later, unless its server is closed by then."""
        for server in self.servers:
            for listener in server.sockets:
                loop.remove_reader(listener)
        await asyncio.sleep(_SHUTDOWN_POLL_S)
        for server in self.servers:
            server.close()

    async def _shutdown(self) -> None:
        loop = asyncio.get_running_loop()
        await self._stop_accepting(loop)
        ends, quiet_polls = loop.time() + self.cfg.graceful_timeout - 1, 0
        while self.nr_conns and not self._quick_shutdown and quiet_polls < QUIET_POLLS and loop.time() < ends:
            await asyncio.sleep(_SHUTDOWN_POLL_S)
            quiet_polls = 0 if self.asgi.in_flight or self.unsent else quiet_polls + 1
