"""Limits of positions and accounts: filled and open quantity both count, and closing is never refused for its size."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_rules import (
    Command,
    CommandType,
    Facts,
    Limits,
    OrderCounts,
    OrderSide,
    Outcome,
    ReferencePrice,
    RefusalCode,
    Verdict,
    evaluate,
    missing_prices,
)

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
PRICE = ReferencePrice(Decimal(100), "fill", NOW)
FLAT = Facts(
    "UTC",
    False,
    1,
    account_orders=OrderCounts(0, 0, 0),
    symbol_orders=OrderCounts(0, 0, 0),
    position_quantity=Decimal(0),
    open_quantity=Decimal(0),
    reference_price=PRICE,
    opposite_open_quantity=Decimal(0),
    other_exposure=Decimal(0),
    equity=Decimal(1000),
    day_start_equity=Decimal(1000),
)
BUY = Command(CommandType.CREATE, "AAPL", OrderSide.BUY, Decimal(10))
SELL = replace(BUY, side=OrderSide.SELL)
EVERYTHING = Limits(
    1,
    max_position_quantity=Decimal(1),
    max_position_notional=Decimal(1),
    max_open_orders=1,
    allow_short=False,
    max_gross_exposure=Decimal(1),
    max_daily_loss=Decimal(1),
    allowed_symbols=("MSFT",),
    denied_symbols=("AAPL",),
)


def codes(facts: Facts, command: Command = BUY, **limits: Any) -> list[str]:
    decision = evaluate(replace(facts, account_limits=Limits(1, **limits)), command, NOW)
    return [refusal.code.value for refusal in decision.refusals]


numbers = st.integers(0, 40).map(Decimal)
commands = st.builds(
    Command, st.just(CommandType.CREATE), st.just("AAPL"), st.sampled_from(OrderSide), st.integers(1, 40).map(Decimal)
)


def reachable(position: Decimal, orders: list[tuple[OrderSide, Decimal]]) -> list[Decimal]:
    """Every position that fills of some of the orders can lead to."""
    signed = [quantity if side is OrderSide.BUY else -quantity for side, quantity in orders]
    choices = product(*((Decimal(0), quantity) for quantity in signed))
    return [position + sum(chosen) for chosen in choices]


@given(st.integers(-40, 40).map(Decimal), numbers, numbers, commands, st.integers(1, 60).map(Decimal))
def test_a_position_limit_holds_whichever_orders_fill(
    position: Decimal, same: Decimal, opposite: Decimal, command: Command, most: Decimal
) -> None:
    facts = replace(FLAT, position_quantity=position, open_quantity=same, opposite_open_quantity=opposite)
    side = command.side or OrderSide.BUY
    ahead = reachable(position, [(side, same), (side, command.quantity)])
    worst = max(ahead) if side is OrderSide.BUY else -min(ahead)

    assert codes(facts, command, max_position_quantity=most) == ([] if worst <= most else ["POSITION_ABOVE_LIMIT"])
    assert codes(facts, command, max_position_notional=most * 100) == (
        [] if worst <= most else ["POSITION_NOTIONAL_ABOVE_LIMIT"]
    )
    short = side is OrderSide.SELL and worst > 0
    assert codes(facts, command, allow_short=False) == (["SHORT_NOT_ALLOWED"] if short else [])


@given(st.integers(-40, 40).map(Decimal), numbers, numbers, commands, numbers, st.integers(1, 9_000).map(Decimal))
def test_the_gross_exposure_is_the_worst_that_fills_can_make_of_it(
    position: Decimal, same: Decimal, opposite: Decimal, command: Command, others: Decimal, most: Decimal
) -> None:
    facts = replace(
        FLAT,
        position_quantity=position,
        open_quantity=same,
        opposite_open_quantity=opposite,
        other_exposure=others * 10,
    )
    side = command.side or OrderSide.BUY
    other = OrderSide.SELL if side is OrderSide.BUY else OrderSide.BUY
    open_orders = [(side, same), (other, opposite)]
    before = max(map(abs, reachable(position, open_orders)))
    after = max(map(abs, reachable(position, [*open_orders, (side, command.quantity)])))
    refused = after > before and others * 10 + after * 100 > most

    assert codes(facts, command, max_gross_exposure=most) == (["GROSS_EXPOSURE_ABOVE_LIMIT"] if refused else [])


def test_what_closes_a_position_passes_every_limit_of_its_size() -> None:
    facts = replace(FLAT, position_quantity=Decimal(10), reference_price=None, other_exposure=None, equity=Decimal(0))
    limits = replace(EVERYTHING, max_open_orders=None, allowed_symbols=None, denied_symbols=None)

    assert evaluate(replace(facts, account_limits=limits), SELL, NOW).decision is Verdict.ALLOWED


def test_every_limit_has_a_code_of_its_own() -> None:
    facts = replace(FLAT, account_orders=OrderCounts(0, 0, 1), equity=Decimal(0), account_limits=EVERYTHING)

    refusals = evaluate(facts, SELL, NOW).refusals

    assert [(refusal.control, refusal.code.value) for refusal in refusals] == [
        ("account_limits.max_open_orders", "OPEN_ORDERS_ABOVE_LIMIT"),
        ("account_limits.max_position_quantity", "POSITION_ABOVE_LIMIT"),
        ("account_limits.max_position_notional", "POSITION_NOTIONAL_ABOVE_LIMIT"),
        ("account_limits.allow_short", "SHORT_NOT_ALLOWED"),
        ("account_limits.max_gross_exposure", "GROSS_EXPOSURE_ABOVE_LIMIT"),
        ("account_limits.max_daily_loss", "DAILY_LOSS_ABOVE_LIMIT"),
        ("account_limits.allowed_symbols", "SYMBOL_NOT_ALLOWED"),
        ("account_limits.denied_symbols", "SYMBOL_DENIED"),
    ]


@pytest.mark.parametrize(
    ("missing", "limits", "code"),
    [
        ("position_quantity", {"max_position_quantity": Decimal(99)}, "POSITION_ABOVE_LIMIT"),
        ("open_quantity", {"max_position_notional": Decimal(9999)}, "POSITION_NOTIONAL_ABOVE_LIMIT"),
        ("reference_price", {"max_position_notional": Decimal(9999)}, "REFERENCE_PRICE_UNKNOWN"),
        ("reference_price", {"max_gross_exposure": Decimal(9999)}, "REFERENCE_PRICE_UNKNOWN"),
        ("other_exposure", {"max_gross_exposure": Decimal(9999)}, "REFERENCE_PRICE_UNKNOWN"),
        ("opposite_open_quantity", {"max_gross_exposure": Decimal(9999)}, "GROSS_EXPOSURE_ABOVE_LIMIT"),
        ("equity", {"max_daily_loss": Decimal(9999)}, "DAILY_LOSS_ABOVE_LIMIT"),
        ("day_start_equity", {"max_daily_loss": Decimal(9999)}, "DAILY_LOSS_ABOVE_LIMIT"),
    ],
)
def test_a_limit_without_the_fact_it_needs_is_not_evaluated(missing: str, limits: dict[str, Any], code: str) -> None:
    facts = replace(FLAT, **{missing: None, "account_limits": Limits(1, **limits)})

    decision = evaluate(facts, BUY, NOW)

    assert decision.checks[-1].outcome is Outcome.NOT_EVALUATED
    assert [refusal.code.value for refusal in decision.refusals] == [code]


@pytest.mark.parametrize(("age", "usable"), [(-5, True), (60, True), (60.001, False), (86_400, False)])
def test_a_price_is_used_until_it_is_a_minute_old(age: float, usable: bool) -> None:
    old = replace(FLAT, reference_price=replace(PRICE, at=NOW - timedelta(seconds=age)))

    refused = codes(old, max_notional=Decimal(10**9))

    assert refused == ([] if usable else ["REFERENCE_PRICE_UNKNOWN"])
    assert codes(replace(old, price_max_age=timedelta(days=2)), max_notional=Decimal(10**9)) == []


def test_a_refusal_for_an_old_price_names_its_source_and_age() -> None:
    old = replace(FLAT, reference_price=replace(PRICE, at=NOW - timedelta(seconds=90)))

    decision = evaluate(replace(old, symbol_limits=Limits(1, max_notional=Decimal(10**9))), BUY, NOW)

    assert decision.refusals[0].code is RefusalCode.REFERENCE_PRICE_UNKNOWN
    assert "100 (fill), is 90 seconds old" in decision.refusals[0].message


def test_what_refuses_for_sure_is_named_before_a_price_that_is_missing() -> None:
    unpriced = replace(FLAT, reference_price=None)

    refused = codes(unpriced, max_notional=Decimal(10**9), denied_symbols=("AAPL",))

    assert refused == ["SYMBOL_DENIED", "REFERENCE_PRICE_UNKNOWN"]


def test_a_replace_opens_no_further_order() -> None:
    facts = replace(FLAT, symbol_orders=OrderCounts(0, 0, 5), symbol_limits=Limits(1, max_open_orders=5))

    assert evaluate(facts, BUY, NOW).decision is Verdict.REFUSED
    assert evaluate(facts, replace(BUY, type=CommandType.REPLACE), NOW).decision is Verdict.ALLOWED


@pytest.mark.parametrize(("equity", "refused"), [("500", []), ("499.99", ["DAILY_LOSS_ABOVE_LIMIT"])])
def test_beyond_the_daily_loss_only_what_reduces_passes(equity: str, refused: list[str]) -> None:
    facts = replace(FLAT, equity=Decimal(equity), position_quantity=Decimal(10))

    assert codes(facts, BUY, max_daily_loss=Decimal(500)) == refused
    assert codes(facts, SELL, max_daily_loss=Decimal(500)) == []


CHEAP = ReferencePrice(Decimal("0.000000001"), "quote", NOW)
_some = st.none() | st.integers(1, 30).map(Decimal)
_limits = st.builds(
    Limits,
    st.just(1),
    max_quantity=_some,
    max_notional=_some,
    max_open_orders=st.none() | st.integers(1, 2),
    max_position_quantity=_some,
    max_position_notional=_some,
    allow_short=st.none() | st.booleans(),
    max_gross_exposure=_some,
)


@given(
    st.none() | _limits,
    st.none() | _limits,
    st.sampled_from([BUY, SELL]),
    st.integers(-20, 20).map(Decimal),
    st.sampled_from([None, replace(PRICE, at=NOW - timedelta(hours=1))]),
    st.sampled_from([None, Decimal(0)]),
    st.sampled_from([0, 1, 2]),
)
def test_prices_are_missing_where_the_order_would_pass_if_it_cost_nothing(
    account: Limits | None,
    symbol: Limits | None,
    command: Command,
    held: Decimal,
    price: ReferencePrice | None,
    exposure_of_others: Decimal | None,
    orders: int,
) -> None:
    facts = replace(
        FLAT,
        account_limits=account,
        symbol_limits=symbol and replace(symbol, max_gross_exposure=None),
        account_orders=OrderCounts(0, 0, orders),
        position_quantity=held,
        reference_price=price,
        other_exposure=exposure_of_others,
    )
    decision = evaluate(facts, command, NOW)
    missing = missing_prices(decision, command)
    others = Decimal(0) if missing is None or missing.of_others else exposure_of_others

    at_no_cost = evaluate(replace(facts, reference_price=CHEAP, other_exposure=others), command, NOW)

    is_refused, would_pass = decision.decision is Verdict.REFUSED, at_no_cost.decision is Verdict.ALLOWED
    assert (missing is not None) == (is_refused and would_pass)
    assert missing is None or missing.symbol == command.symbol
