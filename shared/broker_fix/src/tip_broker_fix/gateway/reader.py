"""Reads beside the session's own transactions, each a transaction of its own."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import psycopg2

from tip_broker_fix.gateway import store

T = TypeVar("T")
THREADS = 4


class Reader:
    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._here = threading.local()
        self._threads = ThreadPoolExecutor(THREADS)

    async def read(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        work = partial(self._read, function, arguments, named)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _read(self, function: Callable[..., T], arguments: tuple[Any, ...], named: dict[str, Any]) -> T:
        try:
            return function(self._connection(), *arguments, **named)
        except psycopg2.Error:
            self._here.connection = None
            raise

    def _connection(self) -> Any:
        connection = getattr(self._here, "connection", None)
        if connection is None or connection.closed:
            connection = self._here.connection = store.connect(self._url)
            connection.autocommit = True
        return connection
