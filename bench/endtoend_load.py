"""Market orders over many accounts: at a steady rate whatever comes back, or as fast as they are answered."""

import asyncio
import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from tip_testing.commands import create

CONNECTIONS = 16


class Answered(NamedTuple):
    at: float
    """By the clock that Postgres on this machine has, too."""
    seconds: float


@dataclass
class Taken:
    """What was answered with 201, by intent, and how many were refused because the platform was overloaded."""

    orders: dict[str, Answered] = field(default_factory=dict)
    pushed_back: int = 0


@dataclass(frozen=True)
class Orders:
    base_url: str
    api_key: str
    accounts: Sequence[str]

    def paced(self, rate: float, seconds: float) -> Taken:
        """So many a second, each at its moment, also when earlier ones are not answered yet."""
        return asyncio.run(self._paced(rate, seconds))

    def saturating(self, seconds: float, connections: int = CONNECTIONS) -> Taken:
        """So many connections, each sending its next order as soon as the last one is answered."""
        return asyncio.run(self._saturating(seconds, connections))

    async def _paced(self, rate: float, seconds: float) -> Taken:
        taken, idle = Taken(), list[_Connection]()
        began = time.monotonic()

        async def submit(account: str, number: int) -> None:
            connection = idle.pop() if idle else await self._connection()
            await connection.submit(account, number, taken)
            idle.append(connection)

        async with asyncio.TaskGroup() as submits:
            for number, account in zip(range(int(rate * seconds)), itertools.cycle(self.accounts), strict=False):
                await asyncio.sleep(began + number / rate - time.monotonic())
                submits.create_task(submit(account, number))
        return taken

    async def _saturating(self, seconds: float, connections: int) -> Taken:
        taken, until = Taken(), time.monotonic() + seconds
        numbers, accounts = itertools.count(), itertools.cycle(self.accounts)

        async def submit_on() -> None:
            connection = await self._connection()
            while time.monotonic() < until:
                await connection.submit(next(accounts), next(numbers), taken)

        async with asyncio.TaskGroup() as callers:
            for _ in range(connections):
                callers.create_task(submit_on())
        return taken

    async def _connection(self) -> "_Connection":
        address = urlsplit(self.base_url)
        return _Connection(*await asyncio.open_connection(address.hostname, address.port), self.api_key)


@dataclass
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    api_key: str

    async def submit(self, account: str, number: int, taken: Taken) -> None:
        """Until it is taken: an overloaded platform says when to come again."""
        message = _message(self.api_key, account, number)
        while True:
            began = time.time()
            self.writer.write(message)
            status, head, body = await _answer(self.reader)
            if status == 201:
                now = time.time()
                taken.orders[json.loads(body)["intent_id"]] = Answered(now, now - began)
                return
            if status != 503 or b"retry-after:" not in head:
                raise SystemExit(f"bench: {head.decode()}{body.decode()}")
            taken.pushed_back += 1
            await asyncio.sleep(float(head.partition(b"retry-after:")[2].split(b"\r\n")[0]))


def _message(api_key: str, account: str, number: int) -> bytes:
    body = json.dumps(create("AAPL", "1", ("BUY", "SELL")[number // 97 % 2])).encode()
    head = (
        f"POST /v1/accounts/{account}/intents HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"x-api-key: {api_key}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
    return int(head.split(b" ", 2)[1]), head, await reader.readexactly(length)
