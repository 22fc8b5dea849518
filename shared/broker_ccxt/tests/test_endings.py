"""What an exchange says of an order that has ended before it was filled is believed when it has said so for a while."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import ccxt
import pytest

from tip_broker_ccxt.endings import MOST_ORDERS, SECONDS, Endings
from tip_brokers import OutcomeUnknown
from tip_brokers.protocol import NewOrder, Order, OrderStatus
from tip_testing.loopback_exchange import LoopbackExchange

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
    endings.believed("a", ended)
    moment += SECONDS

    more = replace(ended, filled_quantity=Decimal("0.5"))
    assert endings.believed("a", more).status == "PENDING_CANCEL"
    moment += SECONDS
    assert endings.believed("a", more).status == "CANCELED"


@pytest.mark.parametrize("show", [Endings.believed, Endings.listed], ids=["read", "listed"])
def test_an_end_after_which_the_order_lived_is_a_new_one(show: Callable[[Endings, str, Order], Order]) -> None:
    moment = 0.0
    endings, ended = Endings(lambda: moment), replace(WORKING, status=OrderStatus.CANCELED)
    endings.believed("a", ended)
    show(endings, "a", WORKING)
    moment += SECONDS

    assert endings.believed("a", ended).status == "PENDING_CANCEL"


def test_an_end_in_one_account_is_none_of_the_order_with_the_same_id_in_another(
    connection: Any, exchange: LoopbackExchange, secret: dict[str, str]
) -> None:
    moment = 0.0
    connection.endings = Endings(lambda: moment)
    accounts = [connection.account({**secret, "apiKey": book.key}) for book in exchange.books]
    made = [account.create(ORDER).broker_order_id for account in accounts]

    def shown_after_cancel(account: Any) -> Any:
        account.cancel(made[0])
        return account.order(made[0]).status

    assert made[0] == made[1]
    assert shown_after_cancel(accounts[0]) == "PENDING_CANCEL"
    moment += SECONDS
    assert shown_after_cancel(accounts[1]) == "PENDING_CANCEL"
    exchange.books[1].orders.clear()
    assert accounts[1].order(made[1]) is None


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


def test_of_ends_only_so_many_are_kept() -> None:
    endings = Endings(lambda: 0.0)
    for number in range(MOST_ORDERS + 10):
        endings.believed("a", replace(WORKING, broker_order_id=str(number), status=OrderStatus.CANCELED))

    assert len(endings._shown) == MOST_ORDERS
