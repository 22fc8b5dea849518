"""A worker that stops leaves nobody behind."""

import asyncio
import socket
from contextlib import closing
from types import SimpleNamespace
from typing import Any

from chassis.gunicorn_worker import Worker


class _Listener(socket.socket):
    """Knows when it has accepted a connection."""

    accepted = 0

    def accept(self) -> tuple[socket.socket, Any]:
        connection = super().accept()
        self.accepted += 1
        return connection


class _Counted(asyncio.Protocol):
    """A connection as gunicorn counts it."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def connection_made(self, _transport: asyncio.BaseTransport) -> None:
        self._worker.nr_conns += 1


def test_a_connection_that_is_being_accepted_when_a_worker_stops_is_served() -> None:
    """Callers whose connections end with every answer meet a stopping worker at this moment."""

    async def stop_while_accepting() -> int:
        worker = SimpleNamespace(
            nr_conns=0, unsent=set(), asgi=SimpleNamespace(in_flight=0), cfg=SimpleNamespace(graceful_timeout=8),
            _quick_shutdown=False, _stop_accepting=lambda loop: Worker._stop_accepting(worker, loop),
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        listener = _Listener()
        listener.bind(("127.0.0.1", 0))
        worker.servers = [await loop.create_server(lambda: _Counted(worker), sock=listener, backlog=1)]
        with closing(socket.create_connection(listener.getsockname())):
            while not listener.accepted:
                await asyncio.sleep(0)  # a turn of the loop
            assert worker.nr_conns == 0  # its protocol is not made yet
            await Worker._shutdown(worker)  # type: ignore[arg-type]
        return worker.nr_conns

    assert asyncio.run(stop_while_accepting()) == 1
