"""The WebSocket of updates: authenticate, listen, then every update of the account from there on."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from tip_broker_fix.gateway import views
from tip_broker_fix.gateway.credentials import Unauthorized
from tip_broker_fix.gateway.orders import UNSEEN, Change

LARGEST_BACKLOG = 20_000  # updates a listener may be behind before it is let go
HEARTBEAT_SECONDS = 20.0
LARGEST_MESSAGE = 16_384

Authenticate = Callable[[object, object], str]


class Listener:
    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.account: str | None = None
        self.listens = False
        self._queue: asyncio.Queue[str] = asyncio.Queue(LARGEST_BACKLOG)
        self._is_lost = False

    def send(self, message: str) -> None:
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self._is_lost = True

    async def send_forever(self) -> None:
        while not self._is_lost:
            await self.socket.send_str(await self._queue.get())
        await self.socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=b"too slow")


class Hub:
    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate
        self._listeners: set[Listener] = set()

    def publish(self, changes: list[Change]) -> None:
        """To whoever listens to the order's account; without orders that never were."""
        for change in changes:
            listening = [each for each in self._listeners if each.listens and each.account == change.order.account]
            if listening and change.order.status not in UNSEEN:
                message = json.dumps(views.trade_update(change))
                for listener in listening:
                    listener.send(message)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_SECONDS, max_msg_size=LARGEST_MESSAGE)
        await socket.prepare(request)
        listener = Listener(socket)
        self._listeners.add(listener)
        sender = asyncio.create_task(listener.send_forever())
        try:
            async for message in socket:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    self._answer(listener, message.data)
        finally:
            self._listeners.discard(listener)
            sender.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await sender
        return socket

    async def close(self) -> None:
        """What is not sent any more is reconciled by whoever listened."""
        for listener in list(self._listeners):
            await listener.socket.close(code=WSCloseCode.GOING_AWAY, message=b"session lost")

    def _answer(self, listener: Listener, raw: str | bytes) -> None:
        given = _read(raw)
        if given.get("action") == "auth":
            _reply(listener, "authorization", {"status": self._authorized(listener, given)})
        elif given.get("action") == "listen" and listener.account:
            listener.listens = True
            _reply(listener, "listening", {"streams": ["trade_updates"]})
        else:
            _reply(listener, "authorization", {"status": "unauthorized"})

    def _authorized(self, listener: Listener, given: dict[str, Any]) -> str:
        try:
            listener.account = self._authenticate(given.get("key"), given.get("secret"))
        except Unauthorized:
            return "unauthorized"
        return "authorized"


def _read(raw: str | bytes) -> dict[str, Any]:
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _reply(listener: Listener, stream: str, data: dict[str, Any]) -> None:
    listener.send(json.dumps({"stream": stream, "data": data}))
