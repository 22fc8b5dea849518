"""Hints: heard at once when Redis is there, and never anybody's problem when it is not."""

import asyncio
import time
from collections.abc import Mapping

import redis

from chassis import hints
from tip_local.pytest_plugin import ValkeyServer

NOWHERE = "redis://127.0.0.1:1/0"


def heard_while(redis_url: str, act, seconds: float = 5.0) -> dict[str, int]:
    """Everything heard until something was, after acting."""
    found: dict[str, int] = {}

    async def listen() -> None:
        came = asyncio.Event()

        def heard(positions: Mapping[str, int]) -> None:
            found.update(positions)
            if positions:
                came.set()

        listening = asyncio.create_task(hints.listen(redis_url, heard))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(act)
        await asyncio.wait_for(came.wait(), seconds)
        listening.cancel()

    asyncio.run(listen())
    return found


def test_a_listener_hears_how_far_a_log_has_come(valkey_server: ValkeyServer) -> None:
    writer = hints.Hints(valkey_server.url)

    def act() -> None:
        for position in range(1, 101):
            writer.tell("a-log", position)

    assert heard_while(valkey_server.url, act)["a-log"] >= 1


def test_noise_on_the_channel_is_not_a_hint(valkey_server: ValkeyServer) -> None:
    writer = hints.Hints(valkey_server.url)

    def act() -> None:
        client = redis.Redis.from_url(valkey_server.url)
        for noise in (b"\xff", "[]", "7", '{"other": "x"}', "{"):
            client.publish(hints.CHANNEL, noise)
        client.close()
        writer.tell("log-after-noise", 7)

    assert heard_while(valkey_server.url, act) == {"log-after-noise": 7}


def test_telling_takes_no_time_while_redis_is_down() -> None:
    writer = hints.Hints(NOWHERE)
    began = time.monotonic()

    for position in range(1_000):
        writer.tell("a-log", position)

    assert time.monotonic() - began < 0.2


def test_silence_is_told_from_a_dead_connection(valkey_server: ValkeyServer, monkeypatch, caplog) -> None:
    monkeypatch.setattr(hints, "_SILENCE_S", 0.1)
    writer = hints.Hints(valkey_server.url)

    def act() -> None:
        time.sleep(0.5)
        writer.tell("log-after-silence", 3)

    assert heard_while(valkey_server.url, act) == {"log-after-silence": 3}
    assert "hints_lost" not in caplog.text
