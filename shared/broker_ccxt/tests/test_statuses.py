"""What ccxt is wrong about, of how an order stands."""

import ccxt
import pytest

from tip_broker_ccxt.connection import make_exchange
from tip_broker_ccxt.reading import read_order


@pytest.mark.parametrize(("missing", "figure"), [("accFillSz", "filled"), ("sz", "amount")])
def test_what_an_exchange_does_not_state_is_not_made_up(missing: str, figure: str) -> None:
    """ccxt takes an order that is closed for filled as a whole, and what is filled for what was ordered."""
    row = {"ordId": "1", "state": "filled", "side": "buy", "sz": "2", "accFillSz": "1", "instId": "BTC-USDT"}
    row.pop(missing)

    assert make_exchange("okx", {}).parse_order(row)[figure] is None
    assert ccxt.okx().parse_order(row)[figure] is not None


@pytest.mark.parametrize("word", ["PartiallyFilledCanceled", "PARTIALLY_CANCELED"])
def test_what_was_canceled_after_a_part_of_it_was_filled_has_ended(word: str) -> None:
    assert make_exchange("bybit", {}).parse_order_status(word) == "canceled"


@pytest.mark.parametrize(
    ("word", "meaning"), [("PENDING_CANCEL", "canceling"), ("partially-filled", "open"), ("Cancelling", "canceling")]
)
def test_a_word_for_an_order_that_lives_ends_nothing(word: str, meaning: str) -> None:
    """To ccxt the first is one for an order that was canceled."""
    assert ccxt.toobit().parse_order_status("PENDING_CANCEL") == "canceled"
    assert make_exchange("toobit", {}).parse_order_status(word) == meaning
    assert make_exchange("toobit", {}).parse_order_status("CANCELED") == "canceled"


@pytest.mark.parametrize(
    ("name", "word", "meaning"),
    [
        ("hitbtc", "expired", "EXPIRED"),
        ("coinsph", "EXPIRED", "EXPIRED"),
        ("whitebit", "CANCELED_STP", "CANCELED"),
        ("bitteam", "REJECTED", "REJECTED"),
        ("upbit", "FAILED", "CANCELED"),
    ],
)
def test_a_word_for_an_end_that_ccxt_does_not_know_ends_the_order(name: str, word: str, meaning: str) -> None:
    """HitBTC's is `failed` to it, the others it repeats."""
    row = {"id": "7", "amount": "1", "filled": "0", "symbol": "BTC/USDT", "side": "buy", "timestamp": 1}

    shown = read_order({**row, "status": make_exchange(name, {}).parse_order_status(word)}, lambda id_: id_ or "")

    assert shown.status == meaning
