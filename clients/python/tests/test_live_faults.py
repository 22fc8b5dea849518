"""Connections that are lost, and processes that are killed: nothing is done twice, nothing is missed.

SDK_DISCONNECTS=1000 is the size of the claim; few are tried by default.
"""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cutting_proxy import CuttingProxy
from sdk_platform import Platform

import tip_client as tip
from tip_testing.waiting import eventually

DISCONNECTS = int(os.environ.get("SDK_DISCONNECTS", "30"))
ORDERS = 60


def test_orders_whose_answers_are_lost_are_made_once(platform: Platform, own_account: str) -> None:
    with CuttingProxy(platform.local["base_url"], loses=0.3) as proxy:
        settings = platform.settings(account=own_account, url=f"http://{proxy.address}", deadline=60.0)
        with tip.Client(settings=settings) as client:
            made = [client.buy("SIM.OPEN", 1, limit="1.00").intent_id for _ in range(ORDERS)]
        assert proxy.cuts > ORDERS / 10

    with tip.Client(settings=platform.settings(account=own_account)) as client:
        assert [order.intent_id for order in client.orders()] == made


@pytest.mark.timeout(120 + 4 * DISCONNECTS)
@pytest.mark.parametrize("transport", ["sse", "grpc"])
def test_events_over_many_disconnects_have_neither_gap_nor_duplicate(
    platform: Platform, own_account: str, transport: Any
) -> None:
    sequences: list[int] = []
    with (
        CuttingProxy(platform.local["events_url" if transport == "sse" else "stream_target"]) as proxy,
        tip.Client(settings=through(proxy, platform, own_account)) as client,
        trading(platform, own_account) as is_trading,
        client.events(after=0, transport=transport) as events,
    ):
        with cutting(proxy, sequences):
            while proxy.cuts < DISCONNECTS:
                sequences.append(next(events).position.sequence)
        is_trading.clear()
        last = client.verify().last_sequence
        while sequences[-1] < last:
            sequences.append(next(events).position.sequence)

    assert sequences == list(range(1, len(sequences) + 1))


@pytest.mark.parametrize("transport", ["sse", "grpc"])
def test_a_stream_says_whether_it_is_connected(platform: Platform, own_account: str, transport: Any) -> None:
    with CuttingProxy(platform.local["events_url" if transport == "sse" else "stream_target"]) as proxy:
        client = tip.Client(settings=through(proxy, platform, own_account))
        client.buy("AAPL", 1)
        events = client.events(after=0, transport=transport, give_up_after=1.0)
        assert not events.is_connected
        next(events)
        assert events.is_connected

    with client, events, pytest.raises(tip.TipError):
        list(events)
    assert not events.is_connected


def through(proxy: CuttingProxy, platform: Platform, account: str) -> tip.Settings:
    """Events through the proxy, everything else past it."""
    return platform.settings(account=account, events_url=f"http://{proxy.address}", stream_target=proxy.address)


@contextmanager
def trading(platform: Platform, account: str) -> Iterator[threading.Event]:
    """Orders all the time, until the event is cleared."""
    going = threading.Event()
    going.set()

    def trade() -> None:
        with tip.Client(settings=platform.settings(account=account)) as client:
            while going.is_set():
                client.buy("AAPL", 1)
                time.sleep(0.05)

    thread = threading.Thread(target=trade)
    thread.start()
    try:
        yield going
    finally:
        going.clear()
        thread.join()


@contextmanager
def cutting(proxy: CuttingProxy, received: list[int]) -> Iterator[None]:
    """Cut at any moment, but not before something was received since: a slow machine must get somewhere."""
    done, chance = threading.Event(), random.Random(11)

    def cut() -> None:
        before = 0
        while not done.wait(chance.random() / 20):
            if len(received) > before and proxy.cut():
                before = len(received)

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("victims", [("web", "web-2"), ("postgres",)], ids=" and ".join)
def test_a_kill_while_orders_are_submitted_leaves_one_intent_for_each_call(
    platform: Platform, own_account: str, victims: tuple[str, ...]
) -> None:
    settings = platform.settings(account=own_account, deadline=120.0)
    answered: dict[str, str] = {}
    raised: dict[str, tip.TipError] = {}

    def submit(client: tip.Client, client_id: str) -> None:
        try:
            answered[client_id] = client.buy("SIM.OPEN", 1, limit="1.00", client_id=client_id).intent_id
        except tip.TipError as error:
            raised[client_id] = error

    def caller(name: str) -> None:
        with tip.Client(settings=settings) as client:
            for number in range(ORDERS // 4):
                submit(client, f"{name}-{number}")

    threads = [threading.Thread(target=caller, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(answered) > 3)
    kill(platform, victims)
    for thread in threads:
        thread.join()

    with tip.Client(settings=settings) as client:
        listed = eventually(lambda: recovered(client))
    assert set(Counter(listed).values()) == {1}
    assert dict(listed) == answered
    assert raised == {}, "the platform was back within the deadline"


def recovered(client: tip.Client) -> list[tuple[str, str]] | None:
    try:
        return [(str(order.client_id), order.intent_id) for order in client.orders(page_size=500)]
    except (tip.Unavailable, tip.ConnectionFailed):
        return None


def kill(platform: Platform, names: tuple[str, ...]) -> None:
    """kill -9; the platform starts them again."""
    state = platform.home / "state.json"
    if not state.exists():
        pytest.skip("the processes of this platform are not known")
    for process in json.loads(state.read_text())["processes"]:
        if process["name"] in names:
            os.kill(process["pid"], signal.SIGKILL)


def test_a_platform_that_stays_away_is_reported_truthfully(platform: Platform) -> None:
    unreached = tip.Settings(url="http://127.0.0.1:1", key="k", account="a", deadline=0.5)
    with tip.Client(settings=unreached) as client, pytest.raises(tip.ConnectionFailed) as failed:
        client.buy("AAPL", 1)
    assert failed.value.request_id and not failed.value.may_have_been_done

    with CuttingProxy(platform.local["base_url"], loses=1.0) as proxy:
        lost = platform.settings(url=f"http://{proxy.address}", deadline=0.5)
        with tip.Client(settings=lost) as client, pytest.raises(tip.OutcomeUnknown) as unknown:
            client.buy("SIM.OPEN", 1, limit="1.00")

    with tip.Client(settings=platform.settings()) as client:
        key = unknown.value.idempotency_key
        assert client.buy("SIM.OPEN", 1, limit="1.00", idempotency_key=key).cancel()


def test_an_account_whose_answer_is_lost_is_not_made_twice(platform: Platform) -> None:
    with CuttingProxy(platform.local["base_url"], loses=1.0) as proxy, platform.admin() as admin:
        before = {account.id for account in admin.accounts.list(page_size=500)}
        token = platform.local["organizations"]["acme"]["tokens"]["admin"]
        with tip.Client(f"http://{proxy.address}", token=token) as client, pytest.raises(tip.OutcomeUnknown):
            client.accounts.create("once", broker="paper", environment="paper")

        after = [account for account in admin.accounts.list(page_size=500) if account.id not in before]

    assert [account.name for account in after] == ["once"]
