"""What the official SDK can do with two exits of one position that cancel each other."""

import signal
import sqlite3

import pytest
from alpaca.common.exceptions import APIError
from alpaca.trading.enums import OrderClass, OrderSide, OrderStatus, TimeInForce
from alpaca.trading.models import TradeUpdate
from alpaca.trading.requests import (
    GetOrderByIdRequest,
    GetOrdersRequest,
    LimitOrderRequest,
    ReplaceOrderRequest,
    StopLossRequest,
    TakeProfitRequest,
)

SELL, GTC = OrderSide.SELL, TimeInForce.GTC
HELD, NEW, FILLED, CANCELED = OrderStatus.HELD, OrderStatus.NEW, OrderStatus.FILLED, OrderStatus.CANCELED


def exits(symbol, target=110, stop=90, **fields):
    return LimitOrderRequest(
        **{
            "symbol": symbol,
            "qty": 10,
            "side": SELL,
            "time_in_force": GTC,
            "order_class": OrderClass.OCO,
            "take_profit": TakeProfitRequest(limit_price=target),
            "stop_loss": StopLossRequest(stop_price=stop),
            **fields,
        }
    )


@pytest.fixture
def held(client, symbol):
    """A symbol of which the account holds 10."""
    client.order(symbol, qty="10").raise_for_status()
    return symbol


def statuses(client, order):
    return [client.get_order_by_id(item.id).status for item in (order, *order.legs)]


def test_both_exits_rest_and_reserve_the_position_once(client, held):
    order = client.submit_order(exits(held, client_order_id=f"{held}-pair"))

    [stop] = order.legs
    assert (order.order_class, order.type.value, order.limit_price) == (OrderClass.OCO, "limit", "110")
    assert (order.client_order_id, stop.type.value, stop.stop_price, stop.qty) == (f"{held}-pair", "stop", "90", "10")
    assert stop.client_order_id not in ("", order.client_order_id)
    assert statuses(client, order) == [NEW, HELD]
    assert client.get_open_position(held).qty_available == "0"
    with pytest.raises(APIError, match="insufficient qty available"):
        client.submit_order(exits(held))


def test_the_legs_are_shown_under_their_order_where_that_is_requested(client, held):
    order = client.submit_order(exits(held, client_order_id=f"{held}-nested"))
    ids = [order.legs[0].id]

    assert [leg.id for leg in client.get_order_by_id(order.id, GetOrderByIdRequest(nested=True)).legs] == ids
    [listed] = client.get_orders(GetOrdersRequest(symbols=[held], nested=True))
    assert [leg.id for leg in listed.legs] == ids
    assert {item.id for item in client.get_orders(GetOrdersRequest(symbols=[held]))} == {order.id, *ids}
    found = client.get("/orders:by_client_order_id", {"client_order_id": f"{held}-nested", "nested": "true"})
    assert [leg["id"] for leg in found["legs"]] == [str(leg_id) for leg_id in ids]
    assert client.get_order_by_client_id(f"{held}-nested").legs is None


@pytest.mark.parametrize(("bid", "ask", "ends"), [("111", "112", [FILLED, CANCELED]), ("89", "90", [CANCELED, FILLED])])
def test_the_exit_that_is_filled_cancels_the_other(client, held, listen, bid, ask, ends):
    order = client.submit_order(exits(held))
    listener = listen(client)

    client.quote(held, bid, ask)

    assert statuses(client, order) == ends
    fill, canceled = (TradeUpdate(**message) for message in listener.wait("fill", "canceled"))
    assert {fill.order.id, canceled.order.id} == {order.id, order.legs[0].id}
    with pytest.raises(APIError, match="position does not exist"):
        client.get_open_position(held)


@pytest.mark.parametrize("leg", [0, 1])
def test_the_exit_that_is_canceled_takes_the_other_with_it(client, held, leg):
    order = client.submit_order(exits(held))

    client.cancel_order_by_id((order, *order.legs)[leg].id)

    assert statuses(client, order) == [CANCELED, CANCELED]
    assert client.get_open_position(held).qty_available == "10"
    with pytest.raises(APIError, match="order is already in"):
        client.cancel_order_by_id((order, *order.legs)[1 - leg].id)


def test_a_cancel_of_all_orders_ends_both_exits(client, held):
    order = client.submit_order(exits(held))

    answers = client.cancel_orders()

    assert [answer.status for answer in answers] == [200, 200]
    assert statuses(client, order) == [CANCELED, CANCELED]


@pytest.mark.parametrize(("bid", "ask"), [("111", "112"), ("89", "90")])
def test_what_one_exit_has_filled_is_taken_from_the_other(client, held, listen, bid, ask):
    order = client.submit_order(exits(held))
    listener = listen(client)

    client.quote(held, bid, ask, bid_size="4")

    both = [client.get_order_by_id(item.id) for item in (order, *order.legs)]
    assert sorted((item.qty, item.filled_qty) for item in both) == [("10", "4"), ("6", "0")]
    assert [message["event"] for message in listener.wait("partial_fill", "restated")]
    assert client.get_open_position(held).qty_available == "0"
    client.quote(held, bid, ask)
    assert sorted(item.value for item in statuses(client, order)) == ["canceled", "filled"]
    assert sum(row["qty"] == "0" for row in client.get("/positions")) == 0


def test_a_stop_with_a_limit_price_is_a_stop_limit(client, held):
    order = client.submit_order(exits(held, stop_loss=StopLossRequest(stop_price=90, limit_price=89)))

    [stop] = order.legs
    assert (stop.type.value, stop.stop_price, stop.limit_price) == ("stop_limit", "90", "89")


def test_a_leg_is_replaced_and_stays_one(client, held):
    order = client.submit_order(exits(held))
    stop = client.replace_order_by_id(order.legs[0].id, ReplaceOrderRequest(stop_price=95, client_order_id=f"{held}-2"))

    client.quote(held, "94", "95")

    assert client.get_order_by_id(stop.id).status == FILLED
    assert client.get_order_by_id(order.id).status == CANCELED
    with pytest.raises(APIError, match="cannot replace order"):
        client.replace_order_by_id(order.id, ReplaceOrderRequest(limit_price=120))


def test_the_stop_is_shown_with_the_limit_that_took_the_place_of_the_first(client, held):
    order = client.submit_order(exits(held))

    replaced = client.replace_order_by_id(
        order.id, ReplaceOrderRequest(limit_price=120, client_order_id=f"{held}-replaced")
    )

    nested = {"nested": "true"}
    assert client.get(f"/orders/{order.id}", nested)["legs"] is None
    [stop] = client.get(f"/orders/{replaced.id}", nested)["legs"]
    assert (stop["id"], stop["status"]) == (str(order.legs[0].id), "held")


def test_the_quantity_of_a_leg_is_not_replaced(client, held):
    order = client.submit_order(exits(held))

    for leg in (order, *order.legs):
        with pytest.raises(APIError, match="qty of a leg cannot be replaced"):
            client.replace_order_by_id(leg.id, ReplaceOrderRequest(qty=5))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"qty": 1.5}, "fractional orders must be simple orders"),
        ({"time_in_force": TimeInForce.IOC}, "oco orders must be day or gtc orders"),
        ({"stop_loss": StopLossRequest(stop_price=111)}, "other side of the limit price"),
        ({"side": OrderSide.BUY, "stop_loss": StopLossRequest(stop_price=120)}, "oco orders must be exit orders"),
    ],
)
def test_what_cannot_be_an_oco_order_is_refused(client, held, fields, message):
    with pytest.raises(APIError, match=message):
        client.submit_order(exits(held, **fields))


def test_an_oco_order_needs_both_prices(client, held):
    for missing in ("take_profit", "stop_loss"):
        pair = {"take_profit": {"limit_price": "110"}, "stop_loss": {"stop_price": "90"}}
        del pair[missing]

        answer = client.order(held, side="sell", type="limit", order_class="oco", **pair)

        assert (answer.status_code, missing in answer.json()["message"]) == (422, True)


@pytest.mark.parametrize("pair", [{"take_profit": 1, "stop_loss": []}, {"take_profit": {"limit_price": {}}}])
def test_a_body_that_makes_no_sense_is_refused(client, held, pair):
    assert client.order(held, side="sell", type="limit", order_class="oco", **pair).status_code == 422


def test_a_killed_broker_keeps_both_exits(start):
    first = start()
    client = first.client("pairs")
    client.quote("PAIR", "99", "101")
    client.order("PAIR", qty="10").raise_for_status()
    order = client.submit_order(exits("PAIR"))
    first.stop(signal.SIGKILL)

    client = start().client("pairs")
    assert statuses(client, order) == [NEW, HELD]
    client.quote("PAIR", "89", "90")

    assert statuses(client, order) == [CANCELED, FILLED]


def test_data_from_before_there_were_oco_orders_is_read(start, tmp_path):
    first = start()
    order = first.client("before").order("SIM.OPEN", client_order_id="old").json()
    assert first.stop() == 0
    with sqlite3.connect(tmp_path / "own" / "paper-broker.sqlite3") as data:
        data.execute("ALTER TABLE orders DROP COLUMN oco_id")
    data.close()

    client = start().client("before")

    assert client.by_client_id("old")["id"] == order["id"]
    assert client.order("SIM.OPEN", client_order_id="new").status_code == 200
