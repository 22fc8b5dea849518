# Made from _async/stream.py by generate.py; `make client` makes it anew.
"""Events that go on whatever happens to the connection."""

import time
import random
from collections.abc import Mapping
from time import monotonic
from typing import Any, Protocol, Self

from tip_client.cursor import Cursor
from tip_client.errors import TipError
from tip_client.events import Event, LogPosition
from tip_client.token_turns import ended_token

_chance = random.SystemRandom().random


class Source(Protocol):
    """One way to receive messages of the stream."""

    @property
    def is_open(self) -> bool: ...

    def receive(self, after: LogPosition | None) -> Mapping[str, Any]: ...

    def close(self) -> None: ...


class EventStream:
    """An account's events, each once and in order; it reconnects and resumes by itself.

    It ends by an exception alone: Unauthenticated or Forbidden when the credential is no longer good,
    PositionOutOfRange when the log was restored to an earlier state.
    """

    def __init__(self, source: Source, cursor: Cursor, *, renews: bool = False) -> None:
        self._source, self._cursor, self._renews = source, cursor, renews

    @property
    def position(self) -> LogPosition | None:
        """How far it has come: all of the log up to here was yielded, or is of types that are not wanted."""
        return self._cursor.position

    @property
    def is_connected(self) -> bool:
        """Whether it has a connection now; while it has none, it tries to get one again."""
        return self._source.is_open

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        while True:
            try:
                event = self._cursor.accept(self._source.receive(self._cursor.position))
            except TipError as raised:
                failure = ended_token(raised) if self._renews and self._source.is_open else raised
                self._source.close()
                time.sleep(self._cursor.delay_after(failure, monotonic(), _chance()))
                continue
            if event is not None:
                return event

    def close(self) -> None:
        """End the connection. What is iterated after that is received on a new one."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
