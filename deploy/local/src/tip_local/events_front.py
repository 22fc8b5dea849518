"""The event stream at the port of everything else, as the ingress has it: handed on to the stream gateway."""

import asyncio
import re
import resource
import time
from contextlib import suppress
from typing import Any, Self

import aiohttp
from yarl import URL

from chassis import asgi
from chassis.asgi import Receive, Scope, Send
from chassis.problems import Problem
from intents.submit_fast_path import SubmitFastPath

_EVENTS = re.compile(rb"/v1/accounts/[^/]+/events(/ticket|/streams)?")
_OF_CONNECTION = frozenset({b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"})
_OF_PROXIES = frozenset({b"forwarded", b"x-forwarded-for", b"proxy-authorization", b"proxy-connection"})
"""Headers that are about one connection, or about one that nobody here has made."""
_PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=2)
_HEAD_S = 30.0
"""For the gateway's first word: it admits within ten seconds, or refuses."""
_OWN_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_AWAY = Problem(503, "unavailable", "The stream gateway does not answer. Try again.", headers={"Retry-After": "1"})


class EventsFront(SubmitFastPath):
    """Streams hold no thread here, and are not waited for when the process stops: their readers resume."""

    gateway: str | None = None
    """The gateway's address; without one the path is as unknown as any other."""

    def start(self, threads: int) -> Self:
        """With as many open files as there may be: a stream takes two. How many there are is for the gateway to say."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):  # macOS allows fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return super().start(threads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.gateway and scope["type"] == "http" and _EVENTS.fullmatch(scope["raw_path"]):
            await self._hand_on(self.gateway, scope, receive, send)  # which speaks to browsers itself
        else:
            await super().__call__(scope, receive, send)

    async def _hand_on(self, gateway: str, scope: Scope, receive: Receive, send: Send) -> None:
        started, body = time.perf_counter(), await asgi.read(receive)
        if body is None:
            return
        async with aiohttp.ClientSession(auto_decompress=False, timeout=_PATIENCE) as session:
            try:
                async with asyncio.timeout(_HEAD_S):
                    answer = await session.request(**_request(gateway, scope, body))
            except (aiohttp.ClientError, OSError, TimeoutError):
                await asgi.respond(self.for_browsers(scope, send), self._refused(scope, _AWAY, started))
                return
            async with answer:
                await _relay(answer, receive, send)


def _request(gateway: str, scope: Scope, body: bytes) -> dict[str, Any]:
    query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
    return {
        "method": scope["method"],
        "url": URL(f"{gateway}{scope['raw_path'].decode('latin-1')}{query}", encoded=True),
        "headers": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in _handed_on(scope["headers"])],
        "data": body or None,
        "skip_auto_headers": _OWN_HEADERS,
        "allow_redirects": False,
    }


def _handed_on(headers: Any) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in headers if name.lower() not in _OF_CONNECTION | _OF_PROXIES]


async def _relay(answer: aiohttp.ClientResponse, receive: Receive, send: Send) -> None:
    """Until the gateway has ended the answer, or the caller has gone."""
    await send({"type": "http.response.start", "status": answer.status, "headers": _handed_on(answer.raw_headers)})
    sending, left = asyncio.ensure_future(_send_all(answer, send)), asyncio.ensure_future(_until_gone(receive))
    try:
        await asyncio.wait({sending, left}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        left.cancel()
        sending.cancel()
        await asyncio.gather(sending, left, return_exceptions=True)
    if not sending.cancelled() and (problem := sending.exception()):
        raise problem  # the caller sees that the answer is not complete


async def _send_all(answer: aiohttp.ClientResponse, send: Send) -> None:
    async for piece in answer.content.iter_any():
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
