"""Events that go on whatever happens to the connection."""

import asyncio
import random
from collections.abc import Mapping
from time import monotonic
from typing import Any, Protocol, Self

from tip_client.cursor import Cursor
from tip_client.errors import TipError
from tip_client.events import Event, LogPosition
from tip_client.token_turns import ended_token

_chance = random.SystemRandom().random


class AsyncSource(Protocol):
    """One way to receive messages of the stream."""

    @property
    def is_open(self) -> bool: ...

    async def receive(self, after: LogPosition | None) -> Mapping[str, Any]: ...

    async def aclose(self) -> None: ...


class AsyncEventStream:
    """An account's events, each once and in order; it reconnects and resumes by itself.

    It ends by an exception alone: Unauthenticated or Forbidden when the credential is no longer good,
    PositionOutOfRange when the log was restored to an earlier state.
    """

    def __init__(self, source: AsyncSource, cursor: Cursor, *, renews: bool = False) -> None:
        self._source, self._cursor, self._renews = source, cursor, renews

    @property
    def position(self) -> LogPosition | None:
        """How far it has come: all of the log up to here was yielded, or is of types that are not wanted."""
        return self._cursor.position

    @property
    def is_connected(self) -> bool:
        """Whether it has a connection now; while it has none, it tries to get one again."""
        return self._source.is_open

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            try:
                event = self._cursor.accept(await self._source.receive(self._cursor.position))
            except TipError as raised:
                failure = ended_token(raised) if self._renews and self._source.is_open else raised
                await self._source.aclose()
                await asyncio.sleep(self._cursor.delay_after(failure, monotonic(), _chance()))
                continue
            if event is not None:
                return event

    async def aclose(self) -> None:
        """End the connection. What is iterated after that is received on a new one."""
        await self._source.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()
