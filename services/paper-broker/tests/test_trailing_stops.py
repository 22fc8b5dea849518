"""Trailing stops: against a model of their own, and by the official SDK."""

from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal
from itertools import accumulate, pairwise

import pytest
from alpaca.common.exceptions import APIError
from alpaca.trading.enums import OrderSide, OrderStatus, TimeInForce
from alpaca.trading.requests import MarketOrderRequest, ReplaceOrderRequest, TrailingStopOrderRequest
from hypothesis import given
from hypothesis import strategies as st

from paper_broker.model import Change, Exchange, Kind, NewOrder, Quote, Rules, Side, Status
from paper_broker.model import TimeInForce as Time
from paper_broker.model.prices import Prices, Tape, Walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUY, SELL = OrderSide.BUY, OrderSide.SELL
FINEST = Decimal("1e-9")


def market_at(price):
    market = Exchange(Rules("seed", cash=Decimal(10**9)), Prices(Walk("seed"), Tape([])))
    move(market, price)
    return market


def move(market, price):
    market.put_quote(Quote("AAA", price, price), NOW)


def trailing(side, name, trail):
    return NewOrder("AAA", side, Kind.TRAILING_STOP, Time.GTC, qty=Decimal(1), **{name: trail})


def stops_of(side, name, trail, prices):
    """The stop price after each price, by the book: the best price so far, less or plus the trail."""
    best = accumulate(prices, min if side is Side.BUY else max)
    sign = 1 if side is Side.BUY else -1
    for price in best:
        away = trail if name == "trail_price" else price * trail / 100
        yield (price + sign * away).quantize(FINEST, ROUND_DOWN)


def reached(side, price, stop):
    return price >= stop if side is Side.BUY else price <= stop


prices = st.lists(st.decimals(80, 120, places=2), min_size=1, max_size=25)
sides = st.sampled_from(Side)
trails = st.tuples(st.sampled_from(("trail_price", "trail_percent")), st.decimals("0.01", 30, places=2))


@given(sides, trails, prices)
def test_stop_follows_the_best_price_and_fills_at_the_first_that_reaches_it(side, trail, path):
    market = market_at(path[0])
    order = market.submit("alpha", trailing(side, *trail), NOW)
    for price, stop in zip(path, stops_of(side, *trail, path), strict=True):
        move(market, price)
        now = market.state.orders[order.id]
        assert now.stop_price == stop
        assert (now.status is Status.FILLED) == reached(side, price, stop)
        if now.status is Status.FILLED:
            assert now.filled_avg_price == price.normalize()
            return


@given(sides, trails, prices)
def test_stop_never_moves_away_from_the_market(side, trail, path):
    market = market_at(path[0])
    order = market.submit("alpha", trailing(side, *trail), NOW)
    stops = []
    for price in path:
        move(market, price)
        stops.append(market.state.orders[order.id].stop_price)

    assert all(after <= before if side is Side.BUY else after >= before for before, after in pairwise(stops))


def test_replacement_goes_on_from_the_best_price_of_the_order_it_replaces():
    market = market_at(Decimal(100))
    old = market.submit("alpha", trailing(Side.SELL, "trail_price", Decimal(10)), NOW)
    move(market, Decimal(110))
    move(market, Decimal(105))

    new = market.replace("alpha", old.id, Change(trail=Decimal(8)), NOW)

    assert (new.hwm, new.stop_price, new.trail_price, new.trail_percent) == (110, 102, 8, None)


def test_sdk_sends_a_trailing_stop_that_trails_and_sells(client, symbol):
    client.submit_order(MarketOrderRequest(symbol=symbol, qty=2, side=BUY, time_in_force=TimeInForce.DAY))
    wanted = {"symbol": symbol, "qty": 2, "side": SELL, "time_in_force": TimeInForce.GTC}
    order = client.submit_order(TrailingStopOrderRequest(**wanted, trail_percent=10))
    assert (order.type, order.trail_percent, order.hwm, order.stop_price) == ("trailing_stop", "10", "99", "89.1")

    client.quote(symbol, "120", "121")
    client.quote(symbol, "109", "110")
    order = client.get_order_by_id(order.id)
    assert (order.status, order.hwm, order.stop_price) == (OrderStatus.NEW, "120", "108")
    client.quote(symbol, "108", "109")

    order = client.get_order_by_id(order.id)
    assert (order.status, order.filled_avg_price) == (OrderStatus.FILLED, "108")


def test_sdk_replaces_the_trail(client, symbol):
    wanted = {"symbol": symbol, "qty": 2, "side": BUY, "time_in_force": TimeInForce.DAY}
    order = client.submit_order(TrailingStopOrderRequest(**wanted, trail_price=5))

    changed = client.replace_order_by_id(order.id, ReplaceOrderRequest(qty=3, trail=2))

    assert (changed.qty, changed.trail_price, changed.trail_percent, changed.stop_price) == ("3", "2", None, "103")


def test_trailing_stop_stays_where_it_was_after_kill_nine(start):
    broker = start()
    client = broker.client("key")
    client.quote("AAPL", "99", "101")
    client.order("AAPL", type="trailing_stop", trail_price="5", client_order_id="trailing", time_in_force="gtc")
    client.quote("AAPL", "79", "81")
    broker.stop(9)

    order = start().client("key").by_client_id("trailing")

    assert (order["hwm"], order["stop_price"], order["status"]) == ("81", "86", "new")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "trailing stop orders must specify one of trail_price or trail_percent"),
        (
            {"trail_price": "1", "trail_percent": "1"},
            "trailing stop orders must specify one of trail_price or trail_percent",
        ),
        ({"trail_price": "1", "time_in_force": "ioc"}, "trailing stop orders must be day or gtc orders"),
        ({"trail_price": "1", "stop_price": "90"}, "trailing_stop orders must not have stop price"),
        ({"trail_price": "99", "side": "sell"}, "the trail must be less than the price"),
        ({"trail_price": "1", "type": "market"}, "market orders must not have trail price or trail percent"),
    ],
)
def test_senseless_trail_is_refused(client, symbol, fields, message):
    answer = client.order(**{"symbol": symbol, "type": "trailing_stop", **fields})

    assert (answer.status_code, answer.json()["message"]) == (422, message)


def test_trail_of_another_kind_cannot_be_replaced(client, symbol):
    order = client.order(symbol, type="limit", limit_price="90").json()

    with pytest.raises(APIError, match="limit orders must not have trail"):
        client.replace_order_by_id(order["id"], ReplaceOrderRequest(trail=2))
