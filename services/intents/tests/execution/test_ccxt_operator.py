"""An order at an exchange whose answer was lost, and which a person has found there by its id."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner

from intents.execution.client_order_id import client_order_id
from tip import unresolved_orders
from tip_testing.commands import cancel
from tip_testing.loopback_exchange import KEY, SECRET, LoopbackExchange, okx
from tip_testing.waiting import eventually

from ..conftest import Desk
from .conftest import give_credential
from .test_ccxt import UNPROVEN, Trader


@pytest.fixture(scope="module")
def exchange(start: Callable[..., Any]) -> Iterator[LoopbackExchange]:
    made = LoopbackExchange(UNPROVEN)
    for kind in ("reconciler", "executor"):
        start(kind, CCXT_ADDRESSES=f"{UNPROVEN}={made.url}")
    yield made
    made.stop()


@pytest.fixture
def trader(exchange: LoopbackExchange, new_desk: Callable[..., Desk]) -> Trader:
    exchange.book.orders.clear()
    desk = new_desk("live", broker=f"ccxt:{UNPROVEN}")
    give_credential(desk, "", apiKey=KEY, secret=SECRET, password="any")
    return Trader(desk, exchange)


@pytest.fixture
def found(trader: Trader, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The intent of an order that rests at the exchange without our id, resolved by the id that is shown there."""
    shown = okx._shown
    monkeypatch.setattr(okx, "_shown", lambda order: {**shown(order), "clOrdId": ""})
    monkeypatch.setattr(unresolved_orders, "connected", lambda: nullcontext(trader.desk.deps.engine))
    intent = trader.buys("CUT", "10")
    eventually(lambda: state(trader, intent)["reason_code"] == "OPERATOR_REQUIRED")

    resolve(intent, trader.exchange.book.orders[0].id, "working")

    assert state(trader, intent)["status"] == "ACCEPTED"
    return intent


def state(trader: Trader, intent: Any) -> Any:
    return trader.desk.get(f"/{intent['intent_id']}").json["state"]


def resolve(intent: Any, order_id: int, status: str) -> None:
    name = client_order_id(UUID(intent["id"]))
    arguments = [name, "--broker-order-id", str(order_id), "--status", status]
    done = CliRunner().invoke(unresolved_orders.resolve, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output


def of_others(trader: Trader) -> list[Any]:
    return [row for row in trader.desk.rows("broker_order") if row["intent_id"] is None]


def test_an_order_that_an_operator_has_found_by_the_exchanges_id_is_filled(trader: Trader, found: Any) -> None:
    [order] = trader.exchange.book.orders

    order.filled, order.status = order.quantity, "filled"

    assert trader.reaches(found, "FILLED")["filled_quantity"] == "0.5"
    assert of_others(trader) == []


def test_an_order_that_an_operator_has_found_by_the_exchanges_id_is_canceled(trader: Trader, found: Any) -> None:
    trader.desk.created(cancel(found["intent_id"]))

    assert trader.reaches(found, "CANCELED")["filled_quantity"] == "0"
    assert [order.status for order in trader.exchange.book.orders] == ["canceled"]
    assert of_others(trader) == []
