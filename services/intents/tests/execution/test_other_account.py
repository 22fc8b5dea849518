"""A credential of another account at the broker: what the former one holds and fills counts no longer."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from typing import Any
from uuid import uuid4, uuid5

import pytest
from sqlalchemy import create_engine

from intents.execution import store
from intents.execution.credentials import Credentials, KeyPair
from intents.execution.model.known_orders import WatchedAccount
from intents.execution.reconciler import Reconciler
from intents.execution.recorder import Recorder
from intents.execution.watches import Watch
from intents.store.connections import PreparedConnections
from tip_brokers import Brokers, BrokerSettings
from tip_testing.commands import create
from tip_testing.waiting import eventually

from ..test_controls import switch
from .conftest import give_credential
from .paper_connections import connecting_to


@pytest.fixture
def reading(start: Callable[..., Any]) -> Callable[..., AbstractContextManager[None]]:
    """Inside it, accounts are read."""

    @contextmanager
    def read() -> Iterator[None]:
        reconciler = start("reconciler")
        yield
        reconciler.end()

    return read


@pytest.fixture(scope="module", autouse=True)
def executor(start: Callable[..., Any]) -> None:
    start("executor")


def hold(desk: Any, broker_account: str, reference: str = "derived") -> bool:
    with desk.deps.engine.begin() as tx:
        store.credentials.record_login(tx, desk.account_id, reference, broker_account)
        return store.hold_account(tx, desk.account_id, reference, broker_account)


def reference(desk: Any, version: int = 1) -> str:
    return f"{uuid5(desk.account_id, 'credential')}:{version}"


def positions(desk: Any) -> list[Decimal]:
    return [row["quantity"] for row in desk.rows("position")]


def a_position(desk: Any, quantity: int = 10) -> None:
    desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, last_price, updated_at, reconciled_at) "
        "VALUES (:account_id, 'ABC', :quantity, 5, now(), now())",
        quantity=quantity,
    )
    desk.execute(
        "INSERT INTO intents.balance (account_id, currency, cash, equity, buying_power, updated_at) "
        "VALUES (:account_id, 'USD', 1, 1, 1, now())"
    )


def test_what_another_account_at_the_broker_holds_does_not_count(desk):
    hold(desk, "first")
    a_position(desk)
    give_credential(desk, "second")

    assert hold(desk, "second", reference(desk))

    assert positions(desk) == [0] and desk.rows("balance") == []
    [row] = desk.rows("broker_account")
    assert (row["held_account"], row["awaits_reading"], row["reconciled_at"]) == ("second", True, None)


def test_another_credential_of_the_same_account_at_the_broker_discards_nothing(desk):
    hold(desk, "first")
    a_position(desk)
    give_credential(desk, "second")

    assert hold(desk, "first", reference(desk))

    assert positions(desk) == [10] and desk.rows("balance")
    assert not desk.rows("broker_account")[0]["awaits_reading"]


def test_an_account_that_opens_its_first_account_at_the_broker_waits_for_nothing(desk):
    a_position(desk)

    assert hold(desk, "first")

    assert positions(desk) == [10] and not desk.rows("broker_account")[0]["awaits_reading"]


@pytest.mark.parametrize("status", ["active", "pending"])
def test_a_credential_that_is_not_the_accounts_opens_nothing(desk, status):
    give_credential(desk, "first", status=status)
    hold(desk, "first", reference(desk))
    a_position(desk)

    assert not hold(desk, "second", "derived")

    assert positions(desk) == [10] and desk.rows("broker_account")[0]["held_account"] == "first"


class Streams:
    """A broker that keeps each stream open until it is ended."""

    def __init__(self) -> None:
        self.open: set[str] = set()

    def account(self, secret: Any) -> Any:
        streams, key_id = self, secret["key_id"]

        class Account:
            def listen(self, on_ready: Callable[[], None], _on_update: Any, stop: threading.Event) -> None:
                on_ready()
                streams.open.add(key_id)
                stop.wait()
                streams.open.discard(key_id)

        return Account()


def test_the_stream_of_a_former_credential_ends():
    nowhere, streams, account_id = create_engine("postgresql+psycopg2://nobody@127.0.0.1/none"), Streams(), uuid4()
    brokers = Brokers(BrokerSettings(), connecting_to(streams))
    made = Reconciler(
        nowhere, brokers, Credentials(nowhere, "for-tests-only"), Recorder(PreparedConnections(nowhere)), 5.0, streams=1
    )

    def use(key_id: str) -> None:
        pair = KeyPair(key_id, None, {"key_id": key_id, "secret_key": "mine"})
        made.credentials._cached[account_id] = (float("inf"), pair)

    watched = WatchedAccount(account_id, uuid4(), "paper", "paper", is_urgent=False, is_restored=False)
    watch = made._watches[account_id] = Watch(watched)
    use("first")
    made._open_streams()
    eventually(lambda: streams.open == {"first"})

    use("second")
    watch.end_stream_of_other("first")
    assert streams.open == {"first"}, "it is the stream's own"
    watch.end_stream_of_other("second")
    made._open_streams()

    eventually(lambda: streams.open == {"second"})
    watch.end_stream()


def state(desk: Any, action: Any) -> Any:
    return desk.get(f"/{action['intent_id']}").json["state"]


def sell(symbol: str) -> dict[str, Any]:
    payload = {"symbol": symbol, "order_side": "SELL", "spec": {"Market": {"quantity": "1"}}}
    return {"command": {"type": "CREATE", "payload": payload}}


@pytest.fixture
def holder(new_desk: Any, paper: Any, reading: Any) -> Any:
    """A desk that has bought ten with its first credential, and then got one of another account at the broker."""
    desk = new_desk(broker="alpaca")
    paper.quote("TURNED", "9", "10")
    give_credential(desk, f"first of {desk.account_id}")
    with reading():
        desk.created(create("TURNED", "10"))
        eventually(lambda: positions(desk) == [10])
    give_credential(desk, f"second of {desk.account_id}", version=2)
    return desk


def test_an_order_that_needs_a_position_waits_for_the_first_reading_of_another_account(holder, reading):
    switch(holder, "REDUCING")

    action = holder.created(sell("TURNED"))

    eventually(lambda: state(holder, action)["reason_code"] == "POSITION_UNKNOWN", 60)
    assert state(holder, action)["status"] == "PENDING" and positions(holder) == [0]
    with reading():
        eventually(lambda: state(holder, action)["status"] == "DENIED", 60)
    assert state(holder, action)["reason_code"] == "TRADING_REDUCING"


def test_an_order_that_needs_no_position_is_sent_to_another_account_at_once(holder, reading):
    action = holder.created(sell("TURNED"))

    eventually(lambda: state(holder, action)["status"] == "ACCEPTED", 60)
    with reading():
        eventually(lambda: positions(holder) == [-1], 60)


def test_an_account_at_the_broker_that_is_opened_again_is_read_again(holder, reading):
    with reading():
        eventually(lambda: positions(holder) == [0], 60)
        give_credential(holder, f"first of {holder.account_id}", version=3)

        action = holder.created(create("TURNED", "1"))

        eventually(lambda: positions(holder) == [11], 60)
        eventually(lambda: state(holder, action)["status"] == "FILLED", 60)
