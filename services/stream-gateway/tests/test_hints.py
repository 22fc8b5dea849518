"""Hints arrive again after their connection has died, also when nobody noticed it."""

import asyncio
from urllib.parse import urlsplit

import pytest

from chassis import hints
from tip_testing.servers_plugin import ValkeyServer

from .proxy import Proxy


@pytest.mark.parametrize("fault", ["cut", "freeze"])
def test_hints_arrive_again_after_their_connection_died(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(hints, "_SILENCE_S", 0.3)
    address = urlsplit(valkey_server.url)
    received: dict[str, int] = {}

    async def receives(log_id: str) -> None:
        async with asyncio.timeout(20):
            while log_id not in received:
                writer.publish(log_id, 1)
                await asyncio.sleep(0.05)

    async def listen() -> None:
        async with Proxy(address.port or 0) as proxy:
            through = valkey_server.url.replace(address.netloc.split("@")[-1], proxy.target)
            listening = asyncio.create_task(hints.listen(through, received.update))
            await receives("before")
            getattr(proxy, fault)()
            await receives("after")
            listening.cancel()

    writer = hints.LogHeadHints(valkey_server.url)
    asyncio.run(listen())

    assert received == {"before": 1, "after": 1}


def test_a_quiet_connection_is_kept(valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "_SILENCE_S", 1.0)
    made = []
    monkeypatch.setattr(hints, "_queue", lambda real=hints._queue: made.append(1) or real())

    async def listen() -> None:
        listening = asyncio.create_task(hints.listen(valkey_server.url, lambda _: None))
        await asyncio.sleep(3.5)
        listening.cancel()

    asyncio.run(listen())

    assert len(made) == 1
