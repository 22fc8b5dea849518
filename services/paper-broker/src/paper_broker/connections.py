"""aiohttp's HTTP connection with a limit of time: a request that has begun is complete soon, or cut off."""

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

HEADERS_SECONDS = 10.0
BODY_SECONDS = 30.0


class Runner(web.AppRunner):
    """Serves an app over such connections."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(made.request_handler, request_factory=made.request_factory, loop=made._loop, **made._kwargs)


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(RequestHandler):
    __slots__ = ("_deadline",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._waiter is None or self._waiter.done():  # a request is there, or one is being answered
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self._loop.call_later(HEADERS_SECONDS, self.force_close)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
