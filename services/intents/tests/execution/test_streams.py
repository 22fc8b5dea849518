"""Which accounts have a stream, when a reconciler watches more of them than it has streams."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import create_engine

from intents.execution.credentials import Credentials, KeyPair
from intents.execution.model.commands import DERIVED
from intents.execution.model.known_orders import WatchedAccount
from intents.execution.reconciler import Reconciler
from intents.execution.recorder import Recorder
from intents.execution.watches import Watch
from intents.store.connections import PreparedConnections
from tip_brokers import Brokers, BrokerSettings
from tip_testing.waiting import eventually

from .paper_connections import connecting_to

A, B, C = (UUID(int=number) for number in range(1, 4))
STREAMS = 8


class Quiet:
    """A broker whose streams are silent, and that knows which are open."""

    def __init__(self) -> None:
        self.open: Counter[str] = Counter()

    def account(self, secret: Any) -> Any:
        return _Account(self, secret["key_id"])


class _Account:
    def __init__(self, broker: Quiet, key_id: str) -> None:
        self._broker, self._key_id = broker, key_id

    def listen(self, on_ready: Callable[[], None], _on_update: Any, stop: threading.Event) -> None:
        on_ready()
        self._broker.open[self._key_id] += 1
        stop.wait()
        self._broker.open[self._key_id] -= 1


@pytest.fixture
def quiet() -> Quiet:
    return Quiet()


@pytest.fixture
def reconciler(quiet: Quiet) -> Iterator[Reconciler]:
    nowhere = create_engine("postgresql+psycopg2://nobody@127.0.0.1/none")
    brokers = Brokers(BrokerSettings(), connecting_to(quiet))
    credentials, recorder = Credentials(nowhere, "for-tests-only"), Recorder(PreparedConnections(nowhere))
    made = Reconciler(nowhere, brokers, credentials, recorder, every_seconds=5.0, streams=STREAMS)
    yield made
    for watch in made._watches.values():
        watch.end_stream()


def watch(reconciler: Reconciler, organization_id: UUID, accounts: int) -> None:
    """The organization trades in so many more accounts."""
    for _ in range(accounts):
        account_id = uuid4()
        pair = KeyPair(DERIVED, None, {"key_id": str(account_id), "secret_key": "mine"})
        reconciler.credentials._cached[account_id] = (float("inf"), pair)
        watched = WatchedAccount(account_id, organization_id, "paper", "paper", is_urgent=False, is_restored=False)
        reconciler._watches[account_id] = Watch(watched)
    reconciler._open_streams()


def streams(reconciler: Reconciler) -> list[int]:
    held = Counter(watch.account.organization_id for watch in reconciler._watches.values() if watch.stream)
    return [held[organization_id] for organization_id in (A, B, C)]


def test_streams_that_are_held_for_long_are_shared_with_whoever_comes_later(reconciler):
    watch(reconciler, A, 20)
    assert streams(reconciler) == [6, 0, 0]
    watch(reconciler, B, 20)
    assert streams(reconciler) == [4, 3, 0]
    watch(reconciler, C, 1)
    assert streams(reconciler) == [4, 3, 1]
    watch(reconciler, C, 19)
    assert sorted(streams(reconciler)) == [2, 3, 3]


def test_a_stream_that_is_given_up_ends_and_the_others_go_on(reconciler, quiet):
    def open_streams() -> set[str]:
        return set(+quiet.open)

    def held() -> set[str]:
        return {str(account_id) for account_id, watch in reconciler._watches.items() if watch.stream}

    watch(reconciler, A, 20)
    eventually(lambda: open_streams() == held())
    before = open_streams()
    watch(reconciler, B, 20)

    eventually(lambda: open_streams() == held())

    assert len(before & open_streams()) == len(before) - 2


def test_the_quietest_stream_is_the_one_that_is_given_up(reconciler):
    watch(reconciler, A, 6)
    quietest, *others = reconciler._watches.values()
    quietest.active_at = 0.0
    watch(reconciler, B, 3)

    assert quietest.stream is None and sum(watch.stream is not None for watch in others) == 4


def test_once_shared_streams_stay_where_they_are(reconciler):
    for organization_id in (A, B, C):
        watch(reconciler, organization_id, 20)
    before = [watch.stream for watch in reconciler._watches.values()]

    reconciler._open_streams()

    assert [watch.stream for watch in reconciler._watches.values()] == before


def test_a_reconciler_without_streams_opens_none(reconciler):
    reconciler.streams = 0

    watch(reconciler, A, 1)

    assert streams(reconciler) == [0, 0, 0]
