"""Of what an exchange does, ccxt's requests are the only witness: each is looked at, without sending it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import ccxt
import pytest

from tip_broker_ccxt import probing
from tip_broker_ccxt.exchanges import RECOVERY, read_exchanges

OFFERED = {exchange.id: exchange for exchange in read_exchanges() if exchange.id not in RECOVERY}


@pytest.mark.parametrize(
    ("probe", "lacking"),
    [
        (probing.sends_what_was_ordered, "phemex"),  # it sends scaled numbers
        (probing.sends_what_was_ordered, "kucoin"),  # it looks up the kind of account first
        (probing.lists_all_open_orders, "latoken"),
        (lambda made: probing.names_an_order(made, "fetch_order"), "bybit"),
        (lambda made: probing.names_an_order(made, "cancel_order"), "indodax"),
        (probing.says_how_much_is_filled, "bitstamp"),
        (probing.ends_nothing_that_lives, "poloniex"),
        (probing.loads_markets, "htx"),
    ],
    ids=[
        "quantity and price", "nothing before it", "all open orders", "one order", "one cancel", "what is filled",
        "words for what lives", "markets",
    ],
)  # fmt: skip
def test_an_exchange_that_lacks_one_thing_is_not_offered(probe: Callable[[probing.Made], bool], lacking: str) -> None:
    assert not probe(partial(probing.offline, lacking)) and probe(partial(probing.offline, "okx"))
    assert lacking not in OFFERED


@pytest.mark.parametrize("name", ["hitbtc", "bitfinex"])
def test_an_exchange_that_does_not_get_our_id_is_not_offered(name: str) -> None:
    """To the one ccxt sends it under a name that means nothing there, to the other not at all."""
    assert not probing.carries_our_id(partial(probing.offline, name))
    assert name not in OFFERED


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
        exchange.request("order", "private", "POST", sent)

    monkeypatch.setattr(ccxt.okx, "create_order", create_order)

    assert not probing.sends_what_was_ordered(partial(probing.offline, "okx"))


def test_a_sandbox_at_another_companys_domain_is_none() -> None:
    assert not probing.is_same_house("bequant") and probing.is_same_house("okx")


def test_nothing_is_sent_to_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("a request")

    monkeypatch.setattr("requests.Session.request", refuse)

    assert OFFERED and all(map(probing.is_tradable, OFFERED))
    with_sandbox = [name for name, exchange in OFFERED.items() if exchange.sandbox]
    assert with_sandbox and all(probing.is_tradable(name, in_sandbox=True) for name in with_sandbox)
