"""At an exchange of which only ccxt's words are known nothing is ever sent again: an operator finds out."""

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import ccxt
import pytest

from tip_broker_ccxt.account import CcxtAccount
from tip_broker_ccxt.exchanges import read_exchanges
from tip_broker_ccxt.probing import MARKET_ID, SYMBOL, offline
from tip_brokers import BrokerError, ClientIds, OutcomeUnknown, Refused, find
from tip_brokers.protocol import BROKEN_ANSWER, NewOrder, NotSent
from tip_testing.loopback_exchange import LoopbackExchange
from tip_testing.loopback_exchange.okx import ERRORS

ORDER = NewOrder("tip-0123456789abcdef0123456789abcdef", "OPEN/USDT", "BUY", "Limit", Decimal(1), "GTC", Decimal(20))


def test_an_order_is_followed_by_the_exchanges_id_and_shown_with_ours(account: Any) -> None:
    made = account.create(ORDER)
    [shown] = account.open_orders()

    assert account.client_ids is ClientIds.NONE
    assert made.client_order_id == shown.client_order_id == ORDER.client_order_id
    assert account.order(made.broker_order_id).status == "WORKING"


def test_an_order_that_does_not_carry_our_id_is_followed_by_the_exchanges(
    connection: Any, exchange: LoopbackExchange, secret: dict[str, str]
) -> None:
    """What is shown as its client order id is the exchange's own, or the library's."""
    connection.exchange = replace(connection.exchange, takes_our_id=False)
    account = connection.account(secret)

    made = account.create(ORDER)
    [shown] = account.open_orders()

    assert made.client_order_id == ORDER.client_order_id
    assert shown.is_nameless and shown.broker_order_id == made.broker_order_id
    assert [order.client_id in ORDER.client_order_id for order in exchange.book.orders] == [False]


def test_a_reading_that_was_not_answered_is_no_answer(
    account: Any, exchange: LoopbackExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = account.create(ORDER)
    monkeypatch.setattr(exchange, "_answer", lambda request: setattr(request, "close_connection", True))

    with pytest.raises(BrokerError):
        account.order(made.broker_order_id)


def cancel_answered(answer: dict[str, Any], error: Exception | None = None) -> None:
    """Cancel order 7 by the unmodified library at Toobit, which answers so."""
    toobit = offline("toobit", wanted="nothing")

    def fetch(*_: Any, **__: Any) -> dict[str, Any]:
        toobit.last_json_response = answer
        if error:
            raise error
        return answer

    toobit.fetch = fetch
    described = next(exchange for exchange in read_exchanges() if exchange.id == "toobit")
    connection: Any = SimpleNamespace(exchange=described, object_for=lambda _: toobit)
    CcxtAccount(connection, {}).cancel(f"7@{SYMBOL}")


@pytest.mark.parametrize("status", ["NEW", "CANCELED", "PENDING_CANCEL", "FILLED"])
def test_a_cancel_that_is_answered_with_the_order_was_taken_in(status: str) -> None:
    """ccxt says of one that is not open that it was not found. What became of it is read."""
    cancel_answered({"orderId": "7", "symbol": MARKET_ID, "status": status})


def test_a_cancel_of_an_order_that_is_not_there_is_refused() -> None:
    answer = {"code": "-1143", "msg": "Cannot be found on order book"}

    with pytest.raises(Refused):
        cancel_answered(answer, ccxt.OrderNotFound("toobit no"))
    with pytest.raises(Refused):
        cancel_answered({"orderId": "8", "symbol": MARKET_ID, "status": "CANCELED"})


def test_what_a_person_finds_an_order_by_is_completed_to_the_id_by_which_it_is_followed(
    account: Any, exchange: LoopbackExchange
) -> None:
    made, described = account.create(ORDER), find("ccxt:okx")

    assert described.complete_order_id(str(exchange.book.orders[0].id), ORDER.symbol) == made.broker_order_id
    assert described.complete_order_id(made.broker_order_id, ORDER.symbol) == made.broker_order_id
    assert find("alpaca").complete_order_id("d53d5540", "AAPL") == "d53d5540"


def test_an_error_about_one_order_that_ccxt_does_not_know_is_a_broken_answer_and_no_absence(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ERRORS, "absent", ("59999", "whatever"))

    with pytest.raises(OutcomeUnknown, match=BROKEN_ANSWER):
        account.order("999@OPEN/USDT")


@pytest.mark.parametrize(
    ("is_lost", "expected"), [(True, NotSent), (False, OutcomeUnknown)], ids=["before it", "of it"]
)
def test_what_is_read_before_an_order_may_fail_without_a_doubt_about_the_order(
    account: Any, exchange: LoopbackExchange, monkeypatch: pytest.MonkeyPatch, is_lost: bool, expected: type[Exception]
) -> None:
    create_order = ccxt.okx.create_order

    def after_a_reading(okx: Any, *given: Any) -> Any:
        exchange.loses_markets, exchange.book.lose_next = is_lost, True
        okx.publicGetPublicInstruments({"instType": "SPOT"})
        return create_order(okx, *given)

    monkeypatch.setattr(ccxt.okx, "create_order", after_a_reading)

    with pytest.raises(expected):
        account.create(ORDER)
    assert exchange.book.orders == []


def test_an_order_whose_answer_was_lost_cannot_be_queried(account: Any) -> None:
    with pytest.raises(OutcomeUnknown, match="cannot_be_queried"):
        account.find(ORDER.client_order_id, ORDER.symbol)


def test_an_order_whose_answer_says_that_it_has_ended_is_read_before_that_is_believed(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create_order(*_: Any) -> dict[str, str]:
        return {"id": "7", "status": "closed", "clientOrderId": "another"}

    monkeypatch.setattr("ccxt.okx.create_order", create_order)

    made = account.create(ORDER)

    assert (made.client_order_id, made.broker_order_id) == (ORDER.client_order_id, "7@OPEN/USDT")
    assert (made.status, made.filled_quantity) == ("WORKING", 0)


def test_an_order_of_somebody_that_cannot_be_read_hides_no_other(account: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = account.create(ORDER)
    fetch = ccxt.okx.fetch_open_orders

    def with_a_broken_one(exchange: Any) -> list[Any]:
        listed = fetch(exchange)
        return [{**listed[0], "filled": None}, *listed]

    monkeypatch.setattr(ccxt.okx, "fetch_open_orders", with_a_broken_one)

    assert [order.broker_order_id for order in account.open_orders()] == [made.broker_order_id]


@pytest.mark.parametrize(
    ("coin", "expected"), [("REJECT", Refused), ("MANY", OutcomeUnknown), ("LIMITED", OutcomeUnknown)]
)
def test_only_that_money_lacks_is_believed_of_a_new_order(account: Any, coin: str, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        account.create(replace(ORDER, symbol=f"{coin}/USDT"))


def test_what_the_account_holds_and_prices_are_read(account: Any) -> None:
    account.create(replace(ORDER, symbol="FILL/USDT"))

    assert [(position.symbol, position.quantity) for position in account.positions()] == [("FILL/USDT", 1)]
    assert account.balance().cash == 100000
    assert [(quote.bid, quote.ask) for quote in account.quotes(["FILL/USDT"])] == [(Decimal("19.99"), Decimal("20.01"))]
