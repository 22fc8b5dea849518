"""What each control refuses, what it lets through, and how the decision explains itself."""

from dataclasses import replace
from datetime import UTC, datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_rules import (
    Command,
    CommandType,
    Facts,
    Limits,
    ManualControl,
    OrderCounts,
    OrderSide,
    Outcome,
    ReferencePrice,
    Switch,
    TimeControl,
    TradingState,
    Verdict,
    evaluate,
)

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
FREE = Facts(
    "UTC",
    False,
    7,
    account_orders=OrderCounts(0, 0, 0),
    symbol_orders=OrderCounts(0, 0, 0),
    position_quantity=Decimal(0),
    open_quantity=Decimal(0),
    reference_price=ReferencePrice(Decimal(100), "fill", NOW),
    opposite_open_quantity=Decimal(0),
    other_exposure=Decimal(0),
    equity=Decimal(1000),
    day_start_equity=Decimal(1000),
)
BUY = Command(CommandType.CREATE, "AAPL", OrderSide.BUY, Decimal(10))
EVERYTHING_REFUSES = Facts(
    "UTC",
    True,
    1,
    Switch(TradingState.HALTED, 2, "margin call"),
    Switch(TradingState.REDUCING, 3),
    ManualControl(True, 4, "earnings"),
    TimeControl(5, time(1), time(2)),
    Limits(6, Decimal(1), Decimal(1), 1, 1, 1),
    Limits(7, Decimal(1), Decimal(1), 1, 1, 1),
    OrderCounts(9, 9),
    OrderCounts(9, 9),
    Decimal(0),
    Decimal(0),
    ReferencePrice(Decimal(100), "fill", NOW),
)
ALL_CONTROLS = [
    "account",
    "organization_switch",
    "account_switch",
    "symbol_manual",
    "symbol_time",
    *(f"account_limits.{name}" for name in ("max_quantity", "max_notional", "price_collar_bps")),
    *(f"account_limits.{name}" for name in ("max_orders_per_minute", "max_orders_per_day")),
    *(f"symbol_limits.{name}" for name in ("max_quantity", "max_notional", "price_collar_bps")),
    *(f"symbol_limits.{name}" for name in ("max_orders_per_minute", "max_orders_per_day")),
]


def codes(facts: Facts, command: Command = BUY) -> list[str]:
    return [refusal.code.value for refusal in evaluate(facts, command, NOW).refusals]


def test_without_controls_everything_passes_and_the_account_is_checked() -> None:
    decision = evaluate(FREE, BUY, NOW)

    assert decision.decision is Verdict.ALLOWED
    assert decision.checks == (("account", 7, Outcome.PASSED),)
    assert decision.refusals == ()


def test_every_reason_is_reported_with_the_control_and_its_version() -> None:
    decision = evaluate(EVERYTHING_REFUSES, replace(BUY, limit_price=Decimal(500)), NOW)

    assert decision.decision is Verdict.REFUSED
    assert [check.control for check in decision.checks] == ALL_CONTROLS
    assert [refusal.control for refusal in decision.refusals] == ALL_CONTROLS
    assert {check.outcome for check in decision.checks} == {Outcome.REFUSED}
    assert {(refusal.control, refusal.version) for refusal in decision.refusals[:5]} == {
        ("account", 1),
        ("organization_switch", 2),
        ("account_switch", 3),
        ("symbol_manual", 4),
        ("symbol_time", 5),
    }
    assert len({refusal.code for refusal in decision.refusals}) == 9
    assert "earnings" in decision.refusals[3].message and "margin call" in decision.refusals[1].message


def test_a_cancel_passes_whatever_is_set() -> None:
    decision = evaluate(EVERYTHING_REFUSES, Command(CommandType.CANCEL), NOW)

    assert (decision.decision, decision.refusals) == (Verdict.ALLOWED, ())
    assert {check.outcome for check in decision.checks} == {Outcome.NOT_APPLICABLE}


@pytest.mark.parametrize("command_type", [CommandType.CREATE, CommandType.REPLACE])
@pytest.mark.parametrize("of", ["organization_switch", "account_switch"])
@pytest.mark.parametrize(
    ("state", "refused"),
    [
        (TradingState.ACTIVE, []),
        (TradingState.REDUCING, ["TRADING_REDUCING"]),
        (TradingState.HALTED, ["TRADING_HALTED"]),
    ],
)
def test_either_switch_alone_stops_trading(
    of: str, state: TradingState, refused: list[str], command_type: CommandType
) -> None:
    assert codes(replace(FREE, **{of: Switch(state, 1)}), replace(BUY, type=command_type)) == refused


quantities = st.decimals(-1_000, 1_000, allow_nan=False, allow_infinity=False, places=3)
positive = st.decimals("0.001", 1_000, allow_nan=False, allow_infinity=False, places=3)


@given(quantities, positive, st.sampled_from(OrderSide), st.decimals(0, 1_000, places=3))
def test_reducing_lets_an_order_through_exactly_when_its_fill_can_only_bring_the_position_nearer_to_zero(
    position: Decimal, quantity: Decimal, side: OrderSide, open_quantity: Decimal
) -> None:
    facts = replace(
        FREE,
        account_switch=Switch(TradingState.REDUCING, 1),
        position_quantity=position,
        open_quantity=open_quantity,
    )
    sign = 1 if side is OrderSide.BUY else -1
    after = position + sign * (quantity + open_quantity)
    nearer_and_on_the_same_side = abs(after) < abs(position) and after * position >= 0

    allowed = evaluate(facts, Command(CommandType.CREATE, "X", side, quantity), NOW).decision is Verdict.ALLOWED

    assert allowed is nearer_and_on_the_same_side


@pytest.mark.parametrize(
    ("missing", "controls", "command", "code"),
    [
        ("position_quantity", {"account_switch": Switch(TradingState.REDUCING, 1)}, BUY, "TRADING_REDUCING"),
        ("open_quantity", {"organization_switch": Switch(TradingState.REDUCING, 1)}, BUY, "TRADING_REDUCING"),
        ("reference_price", {"symbol_limits": Limits(1, max_notional=Decimal(10**9))}, BUY, "REFERENCE_PRICE_UNKNOWN"),
        (
            "reference_price",
            {"account_limits": Limits(1, price_collar_bps=10_000)},
            replace(BUY, limit_price=Decimal(100)),
            "REFERENCE_PRICE_UNKNOWN",
        ),
    ],
)
def test_a_control_without_the_fact_it_needs_is_not_evaluated_and_does_not_pass(
    missing: str, controls: dict[str, object], command: Command, code: str
) -> None:
    decision = evaluate(replace(FREE, **controls, **{missing: None}), command, NOW)

    assert decision.checks[-1].outcome is Outcome.NOT_EVALUATED
    assert [refusal.code.value for refusal in decision.refusals] == [code]
    assert "not known" in decision.refusals[0].message


@pytest.mark.parametrize("of", ["account", "symbol"])
@pytest.mark.parametrize("limit", ["max_orders_per_minute", "max_orders_per_day"])
@pytest.mark.parametrize(("before", "outcome"), [(0, "PASSED"), (4, "PASSED"), (5, "REFUSED"), (None, "NOT_EVALUATED")])
def test_the_order_that_would_be_one_too_many_is_refused(of: str, limit: str, before: int | None, outcome: str) -> None:
    counts = OrderCounts(before, 0) if limit.endswith("minute") else OrderCounts(0, before)
    facts = replace(FREE, **{f"{of}_limits": Limits(1, **{limit: 5}), f"{of}_orders": counts})

    decision = evaluate(facts, BUY, NOW)

    assert decision.checks[-1] == (f"{of}_limits.{limit}", 1, outcome)
    assert [refusal.code.value for refusal in decision.refusals] == (
        [] if outcome == "PASSED" else ["ORDER_RATE_ABOVE_LIMIT"]
    )


def test_the_account_and_the_symbol_are_counted_apart() -> None:
    facts = replace(
        FREE,
        account_limits=Limits(1, max_orders_per_day=5),
        symbol_limits=Limits(1, max_orders_per_day=5),
        account_orders=OrderCounts(9, 9),
    )

    assert [refusal.control for refusal in evaluate(facts, BUY, NOW).refusals] == ["account_limits.max_orders_per_day"]


@pytest.mark.parametrize(
    ("side", "limit", "stop", "reference", "passes"),
    [
        ("BUY", None, None, "100", True),
        ("BUY", None, None, "100.01", False),
        ("BUY", "100", None, "500", True),  # a buyer never pays more than the limit
        ("BUY", "100.01", None, "1", False),
        ("SELL", "1", None, "100.01", False),  # a seller gets the market's price, not the limit
        ("SELL", "100.01", None, "1", False),
        ("SELL", "100", None, None, False),  # which is not known, however low the limit
        ("SELL", "0.01", None, None, False),
        ("BUY", None, "0.01", None, False),
        ("BUY", "100", None, None, True),
        ("BUY", None, "100", "1", True),
        ("BUY", None, "100", "101", False),
        ("BUY", "90", "101", "500", True),
    ],
)
def test_the_notional_is_reckoned_at_the_highest_price_the_order_may_well_trade_at(
    side: str, limit: str | None, stop: str | None, reference: str | None, passes: bool
) -> None:
    prices = {"limit_price": Decimal(limit) if limit else None, "stop_price": Decimal(stop) if stop else None}
    facts = replace(
        FREE,
        symbol_limits=Limits(1, max_notional=Decimal(1000)),
        reference_price=ReferencePrice(Decimal(reference), "fill", NOW) if reference else None,
    )

    refused = codes(facts, replace(BUY, side=OrderSide(side), **prices))

    code = "NOTIONAL_ABOVE_LIMIT" if reference else "REFERENCE_PRICE_UNKNOWN"
    assert refused == ([] if passes else [code])


@pytest.mark.parametrize(
    ("limit", "stop", "outcome"),
    [
        (None, None, "NOT_APPLICABLE"),
        ("99.5", None, "PASSED"),
        ("100.5", None, "PASSED"),
        ("100.500000001", None, "REFUSED"),
        ("99.499999999", None, "REFUSED"),
        (None, "101", "REFUSED"),
        ("100", "101", "REFUSED"),
    ],
)
def test_the_edge_of_the_collar_is_inside_it(limit: str | None, stop: str | None, outcome: str) -> None:
    prices = {"limit_price": Decimal(limit) if limit else None, "stop_price": Decimal(stop) if stop else None}

    decision = evaluate(replace(FREE, symbol_limits=Limits(1, price_collar_bps=50)), replace(BUY, **prices), NOW)

    assert decision.checks[-1].outcome == outcome


def test_a_notional_above_the_limit_by_its_last_digit_is_above_it() -> None:
    limit, price = Decimal("100000000100000.000000001"), Decimal("100000000000000.000000001")
    facts = replace(FREE, symbol_limits=Limits(1, max_notional=limit))
    barely = replace(BUY, quantity=Decimal("1.000000001"), limit_price=price)

    assert codes(facts, barely) == ["NOTIONAL_ABOVE_LIMIT"]
    assert codes(facts, replace(barely, quantity=Decimal(1), limit_price=limit)) == []


def test_the_limit_itself_may_be_traded_and_nothing_above_it() -> None:
    facts = replace(FREE, account_limits=Limits(1, max_quantity=Decimal("10.000")))

    assert codes(facts) == []
    assert codes(facts, replace(BUY, quantity=Decimal("10.000000001"))) == ["QUANTITY_ABOVE_LIMIT"]


def test_a_time_zone_that_nobody_knows_refuses_instead_of_failing() -> None:
    for zone in ("Nowhere/Land", "../etc/passwd", "America", ""):
        decision = evaluate(replace(FREE, time_zone=zone, symbol_time=TimeControl(1, time(9))), BUY, NOW)

        assert decision.checks[-1].outcome is Outcome.NOT_EVALUATED
        assert decision.decision is Verdict.REFUSED


def test_stale_order_millis_alone_is_no_window() -> None:
    decision = evaluate(replace(FREE, symbol_time=TimeControl(3, stale_order_millis=1000)), BUY, NOW)

    assert decision.decision is Verdict.ALLOWED
    assert decision.checks[-1] == ("symbol_time", 3, Outcome.NOT_APPLICABLE)
