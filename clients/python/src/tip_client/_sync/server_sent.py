# Made from _async/server_sent.py by generate.py; `make client` makes it anew.
"""Events over HTTP, as Server-Sent Events."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import httpx

from tip_client._sync.http import Http, failure_of
from tip_client.discovery import API_DOCUMENT, events_url_in
from tip_client.errors import ConnectionFailed, TipError
from tip_client.events import LogPosition
from tip_client.request import at
from tip_client.server_sent import ServerSentParser

SILENCE_S = 45.0
"""A stream that is alive has a heartbeat every 15 seconds."""


class ServerSentSource:
    """A connection to the event stream, opened when something is to be received."""

    def __init__(self, http: Http, account_id: str, types: tuple[str, ...]) -> None:
        self._http = http
        self._path = at("/v1/accounts/{}/events", account_id)
        self._types = ",".join(types)
        self._url = http.settings.events_url
        self._connection: ExitStack | None = None
        self._received: deque[Mapping[str, Any] | TipError] = deque()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    def receive(self, after: LogPosition | None) -> Mapping[str, Any]:
        """The next message; the first of a connection is the one after this position."""
        if self._connection is None:
            self._open(after)
        while not self._received:
            self._received.extend(self._parser.feed(self._chunk()))
        message = self._received.popleft()
        if isinstance(message, TipError):
            raise message
        return message

    def close(self) -> None:
        """End the connection; the next message is received on a new one."""
        self._received.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self, after: LogPosition | None) -> None:
        resumed = {"last-event-id": str(after).removesuffix("@")} if after else {}
        headers = {"accept": "text/event-stream", "cache-control": "no-store", **resumed}
        stack = ExitStack()
        url, query = (self._address()).rstrip("/") + self._path, {"subscriptions": self._types}
        answer = stack.enter_context(self._http.streamed(url, query, headers, SILENCE_S))
        self._connection, self._parser = stack, ServerSentParser()
        self._chunks: Iterator[bytes] = answer.iter_bytes()

    def _chunk(self) -> bytes:
        try:
            return next(self._chunks)
        except StopIteration:
            raise ConnectionFailed("The stream ended.", was_sent=True) from None
        except httpx.RequestError as error:
            raise failure_of(error) from None

    def _address(self) -> str:
        """Found out once."""
        if self._url is None:
            self._url = events_url_in(self._http.call(API_DOCUMENT), self._http.settings)
        return self._url
