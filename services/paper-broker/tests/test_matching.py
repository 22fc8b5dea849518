"""Properties of the market itself, without server or storage."""

from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_broker.model import (
    Change,
    Exchange,
    Kind,
    NewOrder,
    Quote,
    Refusal,
    Rules,
    Side,
    Status,
    TimeInForce,
)
from paper_broker.model.prices import Prices, Tape, Walk
from paper_broker.store import Batch, Store

START = datetime(2026, 1, 1, tzinfo=UTC)
ACCOUNTS = ("alpha", "beta")
SYMBOLS = ("AAA", "AAA", "AAA", "BBB", "SIM.PARTIAL50", "SIM.OPEN")  # few, so that orders meet
IMMEDIATE = (TimeInForce.IOC, TimeInForce.FOK)


def exchange(seed="seed", **rules):
    return Exchange(Rules(seed, **rules), Prices(Walk(seed), Tape([])))


def order(symbol="AAA", side=Side.BUY, kind=Kind.MARKET, tif=TimeInForce.DAY, qty="1", limit=None, stop=None):
    return NewOrder(
        symbol,
        side,
        kind,
        tif,
        qty=Decimal(qty),
        limit_price=Decimal(limit) if limit else None,
        stop_price=Decimal(stop) if stop else None,
    )


def quote(bid, ask, bid_size=None, ask_size=None, symbol="AAA"):
    sizes = (Decimal(size) if size is not None else None for size in (bid_size, ask_size))
    return Quote(symbol, Decimal(bid), Decimal(ask), *sizes)


prices = st.integers(90, 110).map(Decimal)


def steps(script):
    """Sixty steps near one price. They come from one drawn number, because lists of drawn steps stay too short and
    too alike for orders to meet; a failure shows the number."""
    dice = Random(script)
    return [dice.choice((submit, submit, submit, submit, requote, requote, amend, tick))(dice) for _ in range(60)]


def submit(dice):
    kind = dice.choice(list(Kind))
    trail = dice.choice(("trail_price", "trail_percent")) if kind is Kind.TRAILING_STOP else None
    wanted = NewOrder(
        symbol=dice.choice(SYMBOLS),
        side=dice.choice(list(Side)),
        kind=kind,
        time_in_force=dice.choice(list(TimeInForce)),
        qty=amount(dice),
        limit_price=Decimal(dice.randint(90, 110)) if kind in (Kind.LIMIT, Kind.STOP_LIMIT) else None,
        stop_price=Decimal(dice.randint(90, 110)) if kind in (Kind.STOP, Kind.STOP_LIMIT) else None,
        **({trail: Decimal(dice.randint(1, 8))} if trail else {}),
    )
    account = dice.choice(ACCOUNTS)
    return lambda market, now: market.submit(account, wanted, now)


def amount(dice):
    return dice.choice((Decimal(dice.randint(1, 20)), Decimal(dice.randint(1, 20_000)) / 1000))


def requote(dice):
    bid, sizes = dice.randint(90, 110), [dice.choice((None, dice.randint(0, 15))) for _ in range(2)]
    wanted = quote(bid, bid + dice.randint(0, 3), *sizes, dice.choice(SYMBOLS))
    return lambda market, now: market.put_quote(wanted, now)


def amend(dice):
    chosen, cancel = dice.random(), dice.random() < 0.5
    change = Change(qty=dice.choice((None, amount(dice))), time_in_force=dice.choice((None, *TimeInForce)))

    def act(market, now):
        orders = list(market.state.orders.values())
        if orders:
            item = orders[int(chosen * len(orders))]
            if cancel:
                market.cancel(item.account_id, item.id, now)
            else:
                market.replace(item.account_id, item.id, change, now)

    return act


def tick(_dice):
    return lambda market, now: market.tick(now)


scripts = st.integers(0, 2**32)


def play(market, script):
    """Run the script on a market near the prices it uses, and yield what each step changed."""
    for symbol in SYMBOLS:
        market.put_quote(quote(99, 101, 5, 5, symbol), START)
    for number, step in enumerate(steps(script)):
        now = START + timedelta(minutes=number)
        with suppress(Refusal):
            step(market, now)
        yield market.state.drain()


def signed(event):
    return event.qty if event.order.side is Side.BUY else -event.qty


@given(scripts)
def test_cash_and_positions_are_exactly_what_was_traded(script):
    market = exchange()
    cash, held = defaultdict(lambda: Decimal(100_000)), defaultdict(Decimal)
    for changes in play(market, script):
        for event in changes.events:
            if event.execution_id:
                cash[event.order.account_id] -= signed(event) * event.price
                held[event.order.account_id, event.order.symbol] += signed(event)
                assert event.position_qty == held[event.order.account_id, event.order.symbol]

    for account in market.state.accounts.values():
        assert account.cash == cash[account.id]
        for symbol, position in account.positions.items():
            assert position.qty == held[account.id, symbol]
            assert (position.cost > 0) == (position.qty > 0)


@given(scripts)
def test_what_is_held_back_is_the_sum_over_open_orders(script):
    market = exchange()
    for _ in play(market, script):
        for account in market.state.accounts.values():
            orders = market.state.open_orders(account.id)
            reserved = [item.unit_hold * item.remaining for item in orders if item.unit_hold is not None]
            assert account.reserved == sum(reserved)
            for symbol, qty in account.held.items():
                closing = [item for item in orders if item.symbol == symbol and item.unit_hold is None]
                assert qty == sum(item.remaining for item in closing)


@given(scripts)
def test_fills_never_exceed_the_quantity_and_respect_the_limit(script):
    market = exchange()
    filled, executions = defaultdict(Decimal), set()
    for changes in play(market, script):
        for event in changes.events:
            if not event.execution_id:
                continue
            assert event.execution_id not in executions
            executions.add(event.execution_id)
            filled[event.order.id] += event.qty
            limit, side = event.order.limit_price, event.order.side
            assert event.qty > 0
            assert limit is None or (event.price <= limit if side is Side.BUY else event.price >= limit)

    for item in market.state.orders.values():
        assert item.filled_qty == filled[item.id] <= item.qty
        assert (item.status is Status.FILLED) == (item.filled_qty == item.qty)


@given(scripts)
def test_ioc_and_fok_leave_nothing_open_and_fok_is_all_or_nothing(script):
    market = exchange()
    for _ in play(market, script):
        for item in market.state.orders.values():
            assert not (item.open and item.time_in_force in IMMEDIATE)
            if item.time_in_force is TimeInForce.FOK:
                assert item.filled_qty in (0, item.qty)


@given(scripts)
def test_executions_never_use_more_than_a_quote_has(script):
    market = exchange()
    for changes in play(market, script):
        for item in changes.quotes.values():
            assert item.bid_size is None or item.bid_size >= 0
            assert item.ask_size is None or item.ask_size >= 0


@given(scripts)
def test_same_seed_and_same_commands_give_the_same_events(script):
    first, second = ([changes.events for changes in play(exchange("seed"), script)] for _ in range(2))

    assert first == second


@settings(max_examples=40)
@given(scripts)
def test_everything_is_the_same_after_a_restart(script):
    store, market = Store("", in_memory=True), exchange()
    for changes in play(market, script):
        store.write(Batch([changes]))
    again = exchange()
    store.load(again.state)

    assert again.state.orders == market.state.orders
    assert again.state.accounts.keys() == market.state.accounts.keys()
    for account in again.state.accounts.values():
        before = market.state.accounts[account.id]
        assert (account.cash, account.positions) == (before.cash, before.positions)
        assert (account.reserved, account.short_cost) == (before.reserved, before.short_cost)
    assert list(again.state.quotes.values()) == list(market.state.quotes.values())
    assert (again.state.sequence, again.state.events) == (market.state.sequence, market.state.events)
    store.close()


@given(
    st.lists(st.tuples(prices, st.integers(1, 9)), min_size=1, max_size=12), st.integers(0, 40), st.sampled_from(Side)
)
def test_scarce_quote_goes_to_the_best_price_then_to_the_oldest(wanted, available, side):
    market = exchange(cash=Decimal(10**9))
    far, best = ("1", "1") if side is Side.SELL else ("500", "500"), min if side is Side.BUY else max
    market.put_quote(quote(*far), START)
    placed = [market.submit("alpha", order(side=side, kind=Kind.LIMIT, qty=q, limit=p), START) for p, q in wanted]
    touch = best(price for price, _ in wanted)  # the worst limit, so that every order may trade

    market.put_quote(quote(touch, touch, available, available), START)

    generous = sorted(zip(placed, wanted, strict=True), key=lambda pair: pair[1][0], reverse=side is Side.BUY)
    left = Decimal(available)
    for item, (_, qty) in generous:  # sorted() is stable: equal prices keep their time
        expected = min(left, Decimal(qty))
        left -= expected
        assert market.state.orders[item.id].filled_qty == expected


def test_newcomer_does_not_overtake_an_order_that_waits_for_size():
    market = exchange()
    market.put_quote(quote(99, 101, ask_size=1), START)
    first = market.submit("alpha", order(qty="2"), START)
    second = market.submit("beta", order(qty="1"), START)

    market.put_quote(quote(99, 101, ask_size=1), START)

    assert market.state.orders[first.id].status is Status.FILLED
    assert market.state.orders[second.id].status is Status.NEW


def test_day_order_expires_after_its_day_and_gtc_does_not():
    market = exchange(day=timedelta(hours=24))
    market.put_quote(quote(99, 101), START)
    day = market.submit("alpha", order(kind=Kind.LIMIT, limit="1"), START)
    gtc = market.submit("alpha", order(kind=Kind.LIMIT, limit="1", tif=TimeInForce.GTC), START)

    market.tick(START + timedelta(hours=23))
    assert market.state.orders[day.id].status is Status.NEW
    market.tick(START + timedelta(hours=24))

    assert market.state.orders[day.id].status is Status.EXPIRED
    assert market.state.orders[gtc.id].status is Status.NEW
    assert market.state.accounts["alpha"].reserved == 1


@pytest.mark.parametrize(("side", "stop", "sleeps", "wakes"), [(Side.BUY, "110", 109, 110), (Side.SELL, "90", 91, 90)])
def test_stop_wakes_exactly_at_its_price(side, stop, sleeps, wakes):
    market = exchange()
    market.put_quote(quote(100, 100), START)
    item = market.submit("alpha", order(side=side, kind=Kind.STOP, stop=stop), START)

    market.put_quote(quote(sleeps, sleeps), START)
    assert market.state.orders[item.id].status is Status.NEW
    market.put_quote(quote(wakes, wakes), START)

    assert market.state.orders[item.id].status is Status.FILLED


def test_replacement_may_use_what_the_old_order_held_back():
    market = exchange(cash=Decimal(1000))
    market.put_quote(quote(200, 200), START)
    old = market.submit("alpha", order(kind=Kind.LIMIT, limit="100", qty="10"), START)

    new = market.replace("alpha", old.id, Change(limit_price=Decimal(50), qty=Decimal(20)), START)
    with pytest.raises(Refusal, match="insufficient buying power"):
        market.replace("alpha", new.id, Change(qty=Decimal(21)), START)

    assert market.state.accounts["alpha"].reserved == 1000
