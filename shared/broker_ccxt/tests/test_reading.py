"""What exchanges show, in our words."""

import pytest

from tip_broker_ccxt.reading import read_order
from tip_brokers import OutcomeUnknown

ROW = {
    "amount": "1",
    "filled": "0",
    "symbol": "BTC/USDT",
    "side": "buy",
    "type": "limit",
    "status": "open",
    "timestamp": 1,
}


def test_orders_that_somebody_placed_without_an_id_are_distinguished_by_the_exchanges() -> None:
    shown = [read_order({**ROW, "id": order_id}, lambda id_: id_ or "").client_order_id for order_id in ("7", "8")]

    assert shown == ["7@BTC/USDT", "8@BTC/USDT"]


def test_what_is_closed_and_not_filled_as_a_whole_was_canceled() -> None:
    row = {**ROW, "id": "7", "status": "closed", "filled": "0.5"}

    assert read_order(row, lambda id_: id_ or "").status == "CANCELED"


def test_what_is_closed_and_does_not_say_for_how_much_it_was_is_a_broken_answer() -> None:
    with pytest.raises(OutcomeUnknown):
        read_order({**ROW, "id": "7", "status": "closed", "amount": None}, lambda id_: id_ or "")


@pytest.mark.parametrize("status", ["open", "closed", "canceled"])
def test_an_order_that_does_not_say_how_much_of_it_is_filled_is_a_broken_answer(status: str) -> None:
    with pytest.raises(OutcomeUnknown):
        read_order({**ROW, "id": "7", "status": status, "filled": None}, lambda id_: id_ or "")
