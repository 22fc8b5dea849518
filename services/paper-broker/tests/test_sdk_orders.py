"""What the official SDK can do with orders."""

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from alpaca.common.exceptions import APIError
from alpaca.trading.enums import OrderSide, OrderStatus, QueryOrderStatus, TimeInForce
from alpaca.trading.requests import (
    GetOrdersRequest,
    LimitOrderRequest,
    MarketOrderRequest,
    ReplaceOrderRequest,
    StopLimitOrderRequest,
    StopOrderRequest,
)

BUY, SELL = OrderSide.BUY, OrderSide.SELL
DAY, GTC, IOC, FOK = TimeInForce.DAY, TimeInForce.GTC, TimeInForce.IOC, TimeInForce.FOK


def resting(symbol, **fields):
    return LimitOrderRequest(
        **{"symbol": symbol, "qty": 2, "side": BUY, "time_in_force": GTC, "limit_price": 90, **fields}
    )


def test_market_order_is_accepted_then_filled_at_the_ask(client, symbol):
    accepted = client.submit_order(MarketOrderRequest(symbol=symbol, qty=1.5, side=BUY, time_in_force=DAY))
    order = client.get_order_by_id(accepted.id)

    assert (accepted.status, accepted.filled_qty) == (OrderStatus.ACCEPTED, "0")
    assert (order.status, order.filled_qty, order.filled_avg_price) == (OrderStatus.FILLED, "1.5", "101")


def test_notional_order_buys_what_the_money_buys(client, symbol):
    accepted = client.submit_order(MarketOrderRequest(symbol=symbol, notional=1010, side=BUY, time_in_force=DAY))
    order = client.get_order_by_id(accepted.id)

    assert (order.qty, order.notional, order.filled_qty) == (None, "1010", "10")


def test_limit_order_waits_for_its_price_and_takes_the_better_one(client, symbol):
    order = client.submit_order(resting(symbol))
    assert client.get_order_by_id(order.id).status == OrderStatus.NEW

    client.quote(symbol, "87", "88")

    order = client.get_order_by_id(order.id)
    assert (order.status, order.filled_avg_price) == (OrderStatus.FILLED, "88")


def test_limit_day_order_for_extended_hours_is_one_also_after_its_replacement(client, symbol):
    order = client.submit_order(resting(symbol, time_in_force=DAY, extended_hours=True))

    new = client.replace_order_by_id(order.id, ReplaceOrderRequest(limit_price=91))

    assert (order.extended_hours, new.extended_hours) == (True, True)
    with pytest.raises(APIError, match="extended hours order must be DAY limit orders"):
        client.replace_order_by_id(new.id, ReplaceOrderRequest(time_in_force=GTC))


def test_notional_order_is_for_the_day_and_is_not_replaced(client, symbol):
    client.quote(symbol, "99", "101", ask_size="1")
    order = client.submit_order(MarketOrderRequest(symbol=symbol, notional=1010, side=BUY, time_in_force=DAY))
    assert client.get_order_by_id(order.id).status == OrderStatus.PARTIALLY_FILLED

    with pytest.raises(APIError, match="notional orders cannot be replaced"):
        client.replace_order_by_id(order.id, ReplaceOrderRequest(qty=3))


def test_stop_order_sleeps_until_its_price_and_then_trades_at_market(client, symbol):
    order = client.submit_order(StopOrderRequest(symbol=symbol, qty=1, side=BUY, time_in_force=GTC, stop_price=110))
    assert client.get_order_by_id(order.id).status == OrderStatus.NEW

    client.quote(symbol, "111", "112")

    assert client.get_order_by_id(order.id).filled_avg_price == "112"


def test_stop_limit_order_wakes_but_keeps_its_limit(client, symbol):
    order = client.submit_order(
        StopLimitOrderRequest(symbol=symbol, qty=1, side=BUY, time_in_force=GTC, stop_price=110, limit_price=111)
    )
    client.quote(symbol, "112", "113")
    assert client.get_order_by_id(order.id).status == OrderStatus.NEW

    client.quote(symbol, "104", "105")  # below the stop again, but it is awake

    assert client.get_order_by_id(order.id).filled_avg_price == "105"


def test_stop_limit_order_that_is_awake_on_arrival_stays_awake(client, symbol):
    order = client.submit_order(
        StopLimitOrderRequest(symbol=symbol, qty=1, side=BUY, time_in_force=GTC, stop_price=100, limit_price=95)
    )

    client.quote(symbol, "90", "91")

    assert client.get_order_by_id(order.id).filled_avg_price == "91"


def test_ioc_takes_what_is_there_and_cancels_the_rest(client, symbol):
    client.quote(symbol, "99", "101", ask_size="3")

    order = client.submit_order(MarketOrderRequest(symbol=symbol, qty=5, side=BUY, time_in_force=IOC))

    order = client.get_order_by_id(order.id)
    assert (order.status, order.filled_qty) == (OrderStatus.CANCELED, "3")


def test_fok_takes_all_or_nothing(client, symbol):
    client.quote(symbol, "99", "101", ask_size="3")

    killed = client.submit_order(MarketOrderRequest(symbol=symbol, qty=5, side=BUY, time_in_force=FOK))
    filled = client.submit_order(MarketOrderRequest(symbol=symbol, qty=3, side=BUY, time_in_force=FOK))

    killed, filled = client.get_order_by_id(killed.id), client.get_order_by_id(filled.id)
    assert (killed.status, killed.filled_qty) == (OrderStatus.CANCELED, "0")
    assert (filled.status, filled.filled_qty) == (OrderStatus.FILLED, "3")


def test_partly_filled_order_goes_on_with_the_next_quote(client, symbol):
    client.quote(symbol, "99", "101", ask_size="3")
    order = client.submit_order(MarketOrderRequest(symbol=symbol, qty=5, side=BUY, time_in_force=DAY))
    assert client.get_order_by_id(order.id).status == OrderStatus.PARTIALLY_FILLED

    client.quote(symbol, "102", "103", ask_size="10")

    order = client.get_order_by_id(order.id)
    assert (order.status, Decimal(order.filled_avg_price)) == (OrderStatus.FILLED, Decimal("101.8"))


def test_replace_makes_a_new_order_that_points_to_the_old_one(client, symbol):
    old = client.submit_order(resting(symbol, client_order_id=f"old-{symbol}"))

    change = ReplaceOrderRequest(qty=3, limit_price=91, client_order_id=f"new-{symbol}")
    new = client.replace_order_by_id(old.id, change)

    old, new = client.get_order_by_id(old.id), client.get_order_by_client_id(f"new-{symbol}")
    assert (old.status, old.replaced_by) == (OrderStatus.REPLACED, new.id)
    assert (new.status, new.replaces, new.qty, new.limit_price) == (OrderStatus.NEW, old.id, "3", "91")


def test_replacement_without_quantity_takes_over_what_is_unfilled(client, symbol):
    client.quote(symbol, "89", "90", ask_size="0.5")
    old = client.submit_order(resting(symbol))

    new = client.replace_order_by_id(old.id, ReplaceOrderRequest(limit_price=80))

    assert (client.get_order_by_id(old.id).filled_qty, new.qty, new.filled_qty) == ("0.5", "1.5", "0")


def test_order_that_was_replaced_cannot_be_replaced_again(client, symbol):
    old = client.submit_order(resting(symbol))
    client.replace_order_by_id(old.id, ReplaceOrderRequest(qty=3))

    with pytest.raises(APIError) as refused:
        client.replace_order_by_id(old.id, ReplaceOrderRequest(qty=4))

    assert (refused.value.status_code, len(client.get_orders())) == (422, 1)


def test_finished_order_can_be_neither_replaced_nor_canceled(client, symbol):
    order = client.submit_order(MarketOrderRequest(symbol=symbol, qty=1, side=BUY, time_in_force=DAY))

    with pytest.raises(APIError) as replaced:
        client.replace_order_by_id(order.id, ReplaceOrderRequest(qty=2))
    with pytest.raises(APIError) as canceled:
        client.cancel_order_by_id(order.id)

    assert (replaced.value.status_code, canceled.value.status_code) == (422, 422)
    assert canceled.value.message == 'order is already in "filled" state'


def test_cancel_and_cancel_all_end_open_orders(client, symbol):
    first, second, third = (client.submit_order(resting(symbol)) for _ in range(3))

    client.cancel_order_by_id(first.id)
    answers = client.cancel_orders()

    assert client.get_order_by_id(first.id).canceled_at
    assert {(answer.id, answer.status) for answer in answers} == {(second.id, 200), (third.id, 200)}
    assert client.get_orders() == []
    assert client.raw("DELETE", "/v2/orders").status_code == 207


def test_client_order_id_is_unique_within_an_account_only(shared_broker, client, symbol):
    client.submit_order(resting(symbol, client_order_id="once"))
    shared_broker.client().submit_order(resting(symbol, client_order_id="once"))

    with pytest.raises(APIError) as refused:
        client.submit_order(resting(symbol, client_order_id="once"))

    assert (refused.value.status_code, refused.value.code) == (422, 40010001)
    assert refused.value.message == "client_order_id must be unique"


def test_orders_are_listed_by_status_time_symbol_and_direction(client, symbol):
    orders = [client.submit_order(resting(symbol)) for _ in range(4)]
    other = client.submit_order(resting("SIM.OPEN"))
    client.cancel_order_by_id(orders[0].id)

    def listed(**filters):
        return [order.id for order in client.get_orders(GetOrdersRequest(**filters))]

    ids = [order.id for order in orders]
    assert listed(symbols=[symbol]) == [ids[3], ids[2], ids[1]]
    assert listed(status=QueryOrderStatus.CLOSED) == [ids[0]]
    assert listed(status=QueryOrderStatus.ALL, direction="asc") == [*ids, other.id]
    assert listed(status=QueryOrderStatus.ALL, limit=2) == [other.id, ids[3]]
    assert listed(status=QueryOrderStatus.ALL, direction="asc", after=orders[1].submitted_at) == [*ids[2:], other.id]
    assert listed(status=QueryOrderStatus.ALL, until=orders[1].submitted_at) == [ids[1], ids[0]]
    assert listed(after=other.submitted_at + timedelta(seconds=1)) == []


def test_orders_of_another_account_are_unknown(shared_broker, client, symbol):
    order = client.submit_order(resting(symbol))

    stranger = shared_broker.client()

    for answer in (
        stranger.raw("GET", f"/v2/orders/{order.id}"),
        stranger.raw("DELETE", f"/v2/orders/{order.id}"),
        stranger.raw("PATCH", f"/v2/orders/{order.id}", json={"qty": "1"}),
        stranger.raw("GET", f"/v2/orders/{uuid4()}"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, 40410000)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"qty": "0"}, "qty must be > 0 and at most 1000000000"),
        ({"qty": "1e1"}, "qty must be a number"),
        ({"qty": "0.0000000001"}, "qty must be > 0 and at most 1000000000"),
        ({"qty": "1.0000000001"}, "qty must have at most 9 decimal places"),
        ({"qty": None}, "qty or notional is required"),
        ({"qty": True}, "qty must be a number"),
        ({"type": "limit"}, "limit orders require limit price"),
        ({"type": "market", "limit_price": "1"}, "market orders must not have limit price"),
        ({"type": "stop"}, "stop orders require stop price"),
        ({"type": "trailing"}, "invalid type: must be one of market, limit, stop, stop_limit, trailing_stop"),
        ({"side": "hold"}, "invalid side: must be one of buy, sell"),
        ({"time_in_force": "opg"}, "invalid time_in_force: must be one of day, gtc, ioc, fok"),
        ({"symbol": "no such"}, 'asset "no such" not found'),
        ({"client_order_id": "x" * 129}, "client_order_id must be no more than 128 characters"),
        ({"extended_hours": True}, "extended hours order must be DAY limit orders"),
        (
            {"extended_hours": True, "type": "limit", "limit_price": "1", "time_in_force": "gtc"},
            "extended hours order must be DAY limit orders",
        ),
        ({"qty": None, "notional": "10", "time_in_force": "gtc"}, "notional orders must be day orders"),
        ({"order_class": "bracket"}, "order_class bracket is not supported by the paper broker"),
        ({"side": "sell", "qty": "0.5"}, "fractional orders cannot be sold short"),
    ],
)
def test_senseless_order_is_refused_with_a_reason(client, symbol, fields, message):
    answer = client.order(**{"symbol": symbol, **fields})

    assert (answer.status_code, answer.json()["message"]) == (422, message)
    assert client.get_orders(GetOrdersRequest(status=QueryOrderStatus.ALL)) == []


@pytest.mark.parametrize("name", ["\x00", "a\nb", "\ud800"])
def test_client_order_id_that_cannot_be_kept_is_refused(client, name):
    answer = client.order("SIM.OPEN", client_order_id=name)

    assert (answer.status_code, answer.json()["message"]) == (422, "client_order_id must be printable")
    assert client.raw("GET", "/v2/orders").json() == []


@pytest.mark.parametrize("query", ["after=0001-01-01T00:00:00%2B23:59", "after=soon", "limit=501", "limit=0000000501"])
def test_senseless_query_is_refused(client, query):
    assert client.raw("GET", f"/v2/orders?{query}").status_code == 422


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"qty": NaN}', b"[" * 50_000, b'{"qty": 1e99999999999999999999}'])
def test_unreadable_body_is_a_bad_request(client, body):
    answer = client.raw("POST", "/v2/orders", data=body)

    assert (answer.status_code, answer.json()["code"]) == (400, 40010000)


def test_quantity_keeps_nine_places(client, symbol):
    answer = client.order(symbol, qty="0.123456789", type="limit", limit_price="0.000000001").json()

    assert (answer["qty"], answer["limit_price"]) == ("0.123456789", "0.000000001")
