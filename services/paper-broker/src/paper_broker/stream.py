"""The trade_updates websocket: authenticate, listen, then every update of the account from there on."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from paper_broker import credentials, views
from paper_broker.faults import Faults
from paper_broker.model import Event

LARGEST_BACKLOG = 20_000  # updates a listener may be behind before it is let go
HEARTBEAT_SECONDS = 20.0
LARGEST_MESSAGE = 16_384
TRADE_UPDATES = "trade_updates"


class Listener:
    """One connection. All messages go through one queue, so an answer never overtakes an update."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.account_id: str | None = None
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(LARGEST_BACKLOG)
        self.lost = False

    def send(self, message: bytes) -> None:
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self.lost = True

    async def send_forever(self) -> None:
        while not self.lost:
            # Binary frames, as Alpaca's paper stream has them.
            await self.socket.send_bytes(await self._queue.get())
        await self.socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=b"too slow")


class Hub:
    """The listeners of each account."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._listeners: dict[str, set[Listener]] = {}
        self._connected: set[Listener] = set()

    def publish(self, events: list[Event]) -> None:
        for event in events:
            listeners = self._listeners.get(event.order.account_id)
            if not listeners:
                continue
            message = json.dumps(views.trade_update(event)).encode()
            for _ in range(self._faults.copies(event)):
                for listener in listeners:
                    listener.send(message)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_SECONDS, max_msg_size=LARGEST_MESSAGE)
        await socket.prepare(request)
        listener = Listener(socket)
        self._connected.add(listener)
        sender = asyncio.create_task(listener.send_forever())
        try:
            await self._receive(listener)
        finally:
            self._listen(listener, [])
            self._connected.discard(listener)
            sender.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await sender
        return socket

    async def close(self) -> None:
        for listener in list(self._connected):
            await listener.socket.close(code=WSCloseCode.GOING_AWAY, message=b"server shutdown")

    async def _receive(self, listener: Listener) -> None:
        async for message in listener.socket:
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                self._answer(listener, message.data)

    def _answer(self, listener: Listener, raw: str | bytes) -> None:
        try:
            action, data = _read(raw)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return _reply(listener, "listening", {"error": "invalid message"})
        if action in ("authenticate", "auth"):
            return _reply(listener, "authorization", {"action": action, "status": _authenticate(listener, data)})
        if action == "listen" and listener.account_id:
            return _reply(listener, "listening", {"streams": self._listen(listener, data.get("streams"))})
        return _reply(listener, "authorization", {"action": action[:20], "status": "unauthorized"})

    def _listen(self, listener: Listener, streams: object) -> list[str]:
        """The list given replaces the one before, so an empty one ends the updates."""
        account_id = listener.account_id or ""
        if isinstance(streams, list) and TRADE_UPDATES in streams:
            self._listeners.setdefault(account_id, set()).add(listener)
            return [TRADE_UPDATES]
        self._listeners.get(account_id, set()).discard(listener)
        return []


def _read(raw: str | bytes) -> tuple[str, dict[str, Any]]:
    """The action and its data, which Alpaca's short form has beside the action instead of inside `data`."""
    message = json.loads(raw)
    data = message.get("data", message)
    if not isinstance(data, dict):
        raise TypeError
    return str(message["action"]), data


def _authenticate(listener: Listener, data: dict[str, Any]) -> str:
    try:
        key_id, secret = data.get("key_id") or data.get("key"), data.get("secret_key") or data.get("secret")
        listener.account_id = credentials.account_id(key_id, secret)
    except (credentials.Unauthorized, credentials.Forbidden):
        return "unauthorized"
    return "authorized"


def _reply(listener: Listener, stream: str, data: dict[str, Any]) -> None:
    listener.send(json.dumps({"stream": stream, "data": data}).encode())
