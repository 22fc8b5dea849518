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
        (probing.prepares_an_order, "bitvavo"),  # it needs an operator's id
        (probing.sends_what_was_ordered, "delta"),  # it sends a number of contracts
        (probing.orders_by_no_reading_method, "deribit"),
        (probing.sends_no_order_in_doubt, "gate"),  # it takes an account that it cannot read for a classic one
        (probing.lists_all_open_orders, "latoken"),
        (probing.reads_an_order, "zaif"),
        (probing.cancels_an_order, "indodax"),  # it wants the side too
        (probing.says_how_much_is_filled, "bitstamp"),  # ccxt counts trades
        (probing.says_how_much_is_filled, "coinmate"),  # ccxt subtracts what remains
        (probing.says_for_how_much_it_is, "foxbit"),  # ccxt adds what is filled
        (probing.has_a_word_for_filled, "luno"),
        (probing.has_a_word_for_canceled, "luno"),  # ccxt repeats it
        (probing.loads_markets, "coincheck"),
    ],
)
def test_an_exchange_that_lacks_one_thing_is_not_offered(probe: Callable[[probing.Made], bool], lacking: str) -> None:
    assert not probe(partial(probing.offline, lacking)) and probe(partial(probing.offline, "okx"))
    assert lacking not in OFFERED


@pytest.mark.parametrize(("name", "takes"), [("hitbtc", False), ("coinbase", False), ("kucoin", True), ("okx", True)])
def test_an_exchange_gets_our_id_where_it_has_a_field_for_it(name: str, takes: bool) -> None:
    """To HitBTC ccxt would send it under a name that means nothing there, to Coinbase an id of its own."""
    assert probing.carries_our_id(partial(probing.offline, name)) is takes
    assert OFFERED[name].takes_our_id is takes


def test_an_exchange_that_is_read_before_an_order_gets_the_order_all_the_same() -> None:
    """For which of the caller's accounts it is."""
    made = partial(probing.offline, "htx")

    assert probing.sends_what_was_ordered(made) and probing.sends_no_order_in_doubt(made)


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

    assert OFFERED and not any(map(probing.lacking, OFFERED))
    with_sandbox = [name for name, exchange in OFFERED.items() if exchange.sandbox]
    assert with_sandbox and not any(probing.lacking(name, in_sandbox=True) for name in with_sandbox)
