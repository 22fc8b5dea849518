"""At an exchange of which only ccxt's words are known nothing is ever sent again: an operator finds out."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import ccxt
import pytest

from tip_broker_ccxt.connection import make_exchange
from tip_broker_ccxt.endings import MOST_ORDERS, SECONDS, Endings
from tip_brokers import BrokerError, BrokerSettings, ClientIds, OutcomeUnknown, Refused, find
from tip_brokers.protocol import NewOrder, NotSent, Order, OrderStatus
from tip_testing.loopback_exchange import KEY, SECRET, LoopbackExchange

OURS = {"apiKey": KEY, "secret": SECRET, "password": "any"}
ORDER = NewOrder("tip-0123456789abcdef0123456789abcdef", "OPEN/USDT", "BUY", "Limit", Decimal(1), "GTC", Decimal(20))
MOMENT = datetime(2026, 1, 5, tzinfo=UTC)
WORKING = Order(
    ORDER.client_order_id,
    "1",
    OrderStatus.WORKING,
    ORDER.symbol,
    "BUY",
    "Limit",
    Decimal(1),
    Decimal(0),
    None,
    MOMENT,
    MOMENT,
)


@pytest.fixture
def exchange() -> Iterator[LoopbackExchange]:
    made = LoopbackExchange("okx")
    yield made
    made.stop()


@pytest.fixture
def connection(exchange: LoopbackExchange) -> Any:
    settings = BrokerSettings({"CCXT_ADDRESSES": f"okx={exchange.url}"}, connect_seconds=1, read_seconds=5)
    return find("ccxt:okx").connect("live", settings)


@pytest.fixture
def account(connection: Any) -> Any:
    return connection.account(OURS)


def test_an_order_is_followed_by_the_exchanges_id_and_shown_with_ours(account: Any) -> None:
    made = account.create(ORDER)
    [shown] = account.open_orders()

    assert account.client_ids is ClientIds.NONE
    assert made.client_order_id == shown.client_order_id == ORDER.client_order_id
    assert account.order(made.broker_order_id).status == "WORKING"


def test_an_order_that_does_not_carry_our_id_is_followed_by_the_exchanges(
    connection: Any, exchange: LoopbackExchange
) -> None:
    """What is shown as its client order id is the exchange's own, or the library's."""
    connection.exchange = replace(connection.exchange, takes_our_id=False)
    account = connection.account(OURS)

    made = account.create(ORDER)
    [shown] = account.open_orders()

    assert made.client_order_id == ORDER.client_order_id
    assert shown.is_nameless and shown.broker_order_id == made.broker_order_id
    assert [order.client_id in ORDER.client_order_id for order in exchange.book.orders] == [False]


def test_an_end_is_believed_when_it_is_shown_again_with_as_much_filled(account: Any, connection: Any) -> None:
    """Some exchanges call an order canceled while it may still be filled."""
    moment = 0.0
    connection.endings = Endings(lambda: moment)
    made = account.create(replace(ORDER, symbol="HALF/USDT", limit_price=Decimal(30)))
    account.cancel(made.broker_order_id)

    def shown() -> tuple[str, Decimal]:
        order = account.order(made.broker_order_id)
        return order.status, order.filled_quantity

    assert shown() == ("PENDING_CANCEL", Decimal("0.5"))
    moment += SECONDS - 1
    assert shown() == ("PENDING_CANCEL", Decimal("0.5"))
    moment += 1
    assert shown() == ("CANCELED", Decimal("0.5"))


def test_an_end_with_more_filled_than_before_is_a_new_one() -> None:
    moment = 0.0
    endings, ended = Endings(lambda: moment), replace(WORKING, status=OrderStatus.CANCELED)
    endings.believed(ended)
    moment += SECONDS

    more = replace(ended, filled_quantity=Decimal("0.5"))
    assert endings.believed(more).status == "PENDING_CANCEL"
    moment += SECONDS
    assert endings.believed(more).status == "CANCELED"


@pytest.mark.parametrize("show", [Endings.believed, Endings.listed], ids=["read", "listed"])
def test_an_end_after_which_the_order_lived_is_a_new_one(show: Callable[[Endings, Order], Order]) -> None:
    moment = 0.0
    endings, ended = Endings(lambda: moment), replace(WORKING, status=OrderStatus.CANCELED)
    endings.believed(ended)
    show(endings, WORKING)
    moment += SECONDS

    assert endings.believed(ended).status == "PENDING_CANCEL"


def test_an_order_that_is_listed_as_open_has_not_ended_whatever_is_said_of_it(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KuCoin is read so while a cancel is under way."""
    account.create(ORDER)
    fetch = ccxt.okx.fetch_open_orders
    monkeypatch.setattr(ccxt.okx, "fetch_open_orders", lambda okx: [{**fetch(okx)[0], "status": "canceled"}])

    assert [order.status for order in account.open_orders()] == ["PENDING_CANCEL"]


def test_an_order_that_the_exchange_forgets_after_its_end_has_ended(
    account: Any, connection: Any, exchange: LoopbackExchange
) -> None:
    moment = 0.0
    connection.endings = Endings(lambda: moment)
    made = account.create(ORDER)
    account.cancel(made.broker_order_id)
    account.order(made.broker_order_id)
    exchange.book.orders.clear()

    assert account.order(made.broker_order_id) is None
    moment += SECONDS
    assert account.order(made.broker_order_id).status == "CANCELED"


def test_an_answer_about_an_order_that_nobody_can_read_is_not_its_end(
    account: Any, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 0.0
    connection.endings = Endings(lambda: moment)
    made = account.create(ORDER)
    account.cancel(made.broker_order_id)
    account.order(made.broker_order_id)
    moment += SECONDS
    fetch = ccxt.okx.fetch_order
    monkeypatch.setattr(ccxt.okx, "fetch_order", lambda *given: {**fetch(*given), "filled": None})

    with pytest.raises(OutcomeUnknown, match="broken_answer"):
        account.order(made.broker_order_id)


def test_an_end_is_not_believed_of_an_order_that_is_listed_as_open(
    account: Any, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 0.0
    connection.endings = Endings(lambda: moment)
    made = account.create(ORDER)
    fetch = ccxt.okx.fetch_order
    monkeypatch.setattr(ccxt.okx, "fetch_order", lambda *given: {**fetch(*given), "status": "canceled"})

    for _ in range(3):
        assert account.order(made.broker_order_id).status in ("PENDING_CANCEL", "WORKING")
        moment += SECONDS


def test_a_reading_that_was_not_answered_is_no_answer(
    account: Any, exchange: LoopbackExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = account.create(ORDER)
    monkeypatch.setattr(exchange, "_answer", lambda request: setattr(request, "close_connection", True))

    with pytest.raises(BrokerError):
        account.order(made.broker_order_id)


@pytest.mark.parametrize(("missing", "figure"), [("accFillSz", "filled"), ("sz", "amount")])
def test_what_an_exchange_does_not_state_is_not_made_up(missing: str, figure: str) -> None:
    """ccxt takes an order that is closed for filled as a whole, and what is filled for what was ordered."""
    row = {"ordId": "1", "state": "filled", "side": "buy", "sz": "2", "accFillSz": "1", "instId": "BTC-USDT"}
    row.pop(missing)

    assert make_exchange("okx", {}).parse_order(row)[figure] is None
    assert ccxt.okx().parse_order(row)[figure] is not None


def test_of_ends_only_so_many_are_kept() -> None:
    endings = Endings(lambda: 0.0)
    for number in range(MOST_ORDERS + 10):
        endings.believed(replace(WORKING, broker_order_id=str(number), status=OrderStatus.CANCELED))

    assert len(endings._shown) == MOST_ORDERS


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
