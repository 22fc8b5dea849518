"""At an exchange of which only ccxt's words are known nothing is ever sent again: an operator finds out."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tip_broker_ccxt import exchanges
from tip_broker_ccxt.reading import read_order
from tip_brokers import BrokerSettings, ClientIds, OutcomeUnknown, find
from tip_brokers.protocol import NewOrder
from tip_testing.loopback_exchange import KEY, SECRET, LoopbackExchange

OURS = {"apiKey": KEY, "secret": SECRET}
ORDER = NewOrder("tip-0123456789abcdef0123456789abcdef", "OPEN/USDT", "BUY", "Limit", Decimal(1), "GTC", Decimal(20))


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """At Binance, as if nothing were known of it."""
    monkeypatch.setattr(exchanges, "RECOVERY", {})
    made = LoopbackExchange("binance")
    settings = BrokerSettings({"CCXT_ADDRESSES": f"binance={made.url}"}, connect_seconds=1, read_seconds=5)
    yield find("ccxt:binance").connect("live", settings).account(OURS)
    made.stop()


def test_an_order_is_followed_by_the_exchanges_id_and_shown_with_ours(account: Any) -> None:
    made = account.create(ORDER)
    [shown] = account.open_orders()
    account.cancel(made.broker_order_id)

    assert account.client_ids is ClientIds.NONE
    assert made.client_order_id == shown.client_order_id == ORDER.client_order_id
    assert account.order(made.broker_order_id).status == "CANCELED"


def test_an_order_whose_answer_was_lost_cannot_be_queried(account: Any) -> None:
    with pytest.raises(OutcomeUnknown, match="cannot_be_queried"):
        account.find(ORDER.client_order_id, ORDER.symbol)


def test_orders_that_somebody_placed_without_an_id_are_distinguished_by_the_exchanges() -> None:
    row = {"amount": "1", "symbol": "BTC/USDT", "side": "buy", "type": "limit", "status": "open", "timestamp": 1}

    shown = [read_order({**row, "id": order_id}, lambda id_: id_ or "").client_order_id for order_id in ("7", "8")]

    assert shown == ["7@BTC/USDT", "8@BTC/USDT"]
