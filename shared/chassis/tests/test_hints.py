"""Hints: received at once when the broker is there, and never anybody's problem when it is not."""

import asyncio
import socket
import time
from collections.abc import Callable

import pytest
from kombu import Producer

from chassis import hints, queues
from tip_testing.servers_plugin import ValkeyServer
from tip_testing.waiting import eventually


def received_while(url: str, act: Callable[[], object], listeners: int = 1) -> list[dict[str, int]]:
    """What each listener received, until each received something, while acting again and again until then."""
    found: list[dict[str, int]] = [{} for _ in range(listeners)]

    async def listen() -> None:
        listening = [asyncio.create_task(hints.listen(url, received.update)) for received in found]
        async with asyncio.timeout(20):
            while not all(found):
                await asyncio.to_thread(act)
                await asyncio.sleep(0.1)
        for task in listening:
            task.cancel()

    asyncio.run(listen())
    return found


def test_every_listener_receives_the_head_of_a_log(valkey_server: ValkeyServer) -> None:
    writer = hints.LogHeadHints(valkey_server.url)

    received = received_while(valkey_server.url, lambda: writer.publish("a-log", 7), listeners=3)

    assert received == [{"a-log": 7}] * 3


def test_noise_is_not_a_hint(valkey_server: ValkeyServer) -> None:
    writer = hints.LogHeadHints(valkey_server.url)

    def act() -> None:
        with queues.connection(valkey_server.url) as opened:
            producer = Producer(opened.channel(), hints.EXCHANGE)
            for noise in ([], 7, {"other": "x"}, "{"):
                producer.publish(noise, serializer="json")
            producer.publish(b"\xff", content_type="application/octet-stream", content_encoding="binary")
            producer.publish("{", content_type="application/json", content_encoding="utf-8")
        writer.publish("log-after-noise", 7)

    assert received_while(valkey_server.url, act) == [{"log-after-noise": 7}]


@pytest.mark.parametrize("answers", [True, False], ids=["refuses", "does not answer"])
def test_publishing_waits_for_no_broker_that(answers: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        writer = hints.LogHeadHints(f"redis://127.0.0.1:{server.getsockname()[1]}/0")
        if answers:
            server.close()
        began, began_computing = time.monotonic(), time.thread_time()
        for position in range(1_000):
            writer.publish("a-log", position)
        took_s, computed_s = time.monotonic() - began, time.thread_time() - began_computing

    eventually(lambda: writer._sender._has_failed)  # it logs that now, and not in the middle of another test
    assert took_s < 5 and computed_s < 0.5  # a thousand connections that are refused take seconds
