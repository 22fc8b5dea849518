"""Of what an exchange does, ccxt's requests are the only witness: each is looked at, without sending it."""

from collections.abc import Callable
from typing import Any

import ccxt
import pytest

from tip_broker_ccxt import probing
from tip_broker_ccxt.exchanges import RECOVERY, read_exchanges

UNPROVEN = [exchange.id for exchange in read_exchanges() if exchange.id not in RECOVERY]


@pytest.mark.parametrize(
    ("probe", "lacking"),
    [
        (probing.sends_what_was_ordered, "phemex"),  # it wants scaled numbers
        (probing.shows_our_id, "bitfinex"),
        (probing.lists_all_open_orders, "latoken"),
        (lambda name: probing.names_an_order(name, "fetch_order"), "bybit"),
        (lambda name: probing.names_an_order(name, "cancel_order"), "indodax"),
    ],
    ids=["quantity and price", "our id", "all open orders", "one order", "one cancel"],
)
def test_an_exchange_that_lacks_one_thing_is_not_offered(probe: Callable[[str], bool], lacking: str) -> None:
    assert not probe(lacking) and probe("okx")
    assert lacking not in UNPROVEN


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param({"amount": "24.764070", "price": "20.06"}, id="money"),
        pytest.param({"amount": "1.23", "price": "20.06"}, id="rounded quantity"),
        pytest.param({"amount": "1.2345", "price": "20"}, id="rounded price"),
        pytest.param({"amount": "1.2345", "price": "20.06", "total": 24.76407}, id="also as money"),
    ],
)
def test_an_order_that_would_not_be_sent_as_it_is_meant_is_noticed(
    sent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def create_order(exchange: Any, *_: Any) -> None:
        exchange.request("order", "private", "POST", {**sent, "id": probing.OUR_ID})

    monkeypatch.setattr(ccxt.okx, "create_order", create_order)

    assert not probing.sends_what_was_ordered("okx")


def test_nothing_is_sent_to_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("a request")

    monkeypatch.setattr("requests.Session.request", refuse)

    assert all(map(probing.is_tradable, UNPROVEN))
