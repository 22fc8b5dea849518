"""What exchanges show, in our words."""

from tip_broker_ccxt.reading import read_order


def test_orders_that_somebody_placed_without_an_id_are_distinguished_by_the_exchanges() -> None:
    row = {"amount": "1", "symbol": "BTC/USDT", "side": "buy", "type": "limit", "status": "open", "timestamp": 1}

    shown = [read_order({**row, "id": order_id}, lambda id_: id_ or "").client_order_id for order_id in ("7", "8")]

    assert shown == ["7@BTC/USDT", "8@BTC/USDT"]
