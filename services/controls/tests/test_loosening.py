"""A change loosens a control if all that passed before passes afterwards; for that nobody needs Controls Premium."""

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

import control_rules
from control_rules import Command, CommandType, Facts, OrderCounts, OrderSide, ReferencePrice, Verdict, evaluate
from controls import model

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
ABOUT: dict[str, Any] = {"organization_id": UUID(int=1), "created_at": NOON, "updated_at": NOON, "version": 1}
OF_ACCOUNT = ABOUT | {"account_id": UUID(int=2)}
OF_SYMBOL = OF_ACCOUNT | {"symbol": "AAPL"}
BUY = Command(CommandType.CREATE, "AAPL", OrderSide.BUY, Decimal(1), limit_price=Decimal("0.01"))
FLAT = Facts(
    time_zone="UTC",
    account_disabled=False,
    account_version=1,
    account_orders=OrderCounts(0, 0, 0),
    symbol_orders=OrderCounts(0, 0, 0),
    position_quantity=Decimal(2),
    open_quantity=Decimal(0),
    opposite_open_quantity=Decimal(0),
    reference_price=ReferencePrice(Decimal("0.01"), "quote", NOON),
)
Passes = Callable[[model.Control | None], bool]

few = st.none() | st.integers(1, 3)
hours = st.none() | st.sampled_from([0, 6, 12, 18]).map(time)
reasons = st.sampled_from([None, "earnings"])
switches = st.builds(
    model.AccountSwitch, **{name: st.just(value) for name, value in OF_ACCOUNT.items()},
    trading_state=st.sampled_from(["ACTIVE", "REDUCING", "HALTED"]), reason=reasons,
)  # fmt: skip
manuals = st.builds(
    model.SymbolManual, **{name: st.just(value) for name, value in OF_SYMBOL.items()},
    manually_disabled=st.booleans(), manual_reason=reasons,
)  # fmt: skip
times = st.builds(
    model.SymbolTime, **{name: st.just(value) for name, value in OF_SYMBOL.items()},
    trading_start=hours, trading_end=hours, stale_order_millis=few.map(lambda value: value and value * 1000),
).filter(lambda control: not control_rules.Window(control.trading_start, control.trading_end).is_empty)  # fmt: skip
limits = st.builds(
    model.SymbolLimits, **{name: st.just(value) for name, value in OF_SYMBOL.items()},
    max_quantity=few.map(lambda value: value and Decimal(value)),
    max_notional=few.map(lambda value: value and Decimal(value)),
    price_collar_bps=few.map(lambda value: value and value * 100),
    max_orders_per_minute=few, max_orders_per_day=few,
    max_position_quantity=st.none(), max_position_notional=st.none(), max_open_orders=st.none(), allow_short=st.none(),
)  # fmt: skip
symbols = st.none() | st.lists(st.sampled_from(["AAPL", "MSFT", "TSLA"]), min_size=1, unique=True)
of_desks = st.builds(
    model.AccountLimits, **{name: st.just(value) for name, value in OF_ACCOUNT.items()},
    **dict.fromkeys(
        ("max_quantity", "max_notional", "price_collar_bps", "max_orders_per_minute", "max_orders_per_day",
         "max_position_notional", "max_gross_exposure", "max_daily_loss"), st.none()),
    max_position_quantity=few.map(lambda value: value and Decimal(value)), max_open_orders=few,
    allow_short=st.none() | st.booleans(), allowed_symbols=symbols, denied_symbols=symbols,
)  # fmt: skip
changes = st.one_of(*(st.tuples(control, st.none() | control) for control in (switches, manuals, times, limits)))


def passing(command: Command, now: datetime = NOON, **facts: Any) -> Passes:
    def passes(control: model.Control | None) -> bool:
        found = evaluate(replace(FLAT, **facts, **_as_facts(control)), command, now)
        return found.decision is Verdict.ALLOWED

    return passes


def _as_facts(control: model.Control | None) -> dict[str, Any]:
    """The control as the rule reads it."""
    if isinstance(control, model.AccountSwitch):
        state = control_rules.TradingState(control.trading_state)
        return {"account_switch": control_rules.Switch(state, 1)}
    if isinstance(control, model.SymbolManual):
        return {"symbol_manual": control_rules.ManualControl(control.manually_disabled, 1)}
    if isinstance(control, model.SymbolTime):
        return {"symbol_time": control_rules.TimeControl(1, control.trading_start, control.trading_end)}
    if isinstance(control, model.Limits):
        named = {item.name: getattr(control, item.name, None) for item in fields(control_rules.Limits)}
        of = "symbol_limits" if isinstance(control, model.SymbolLimits) else "account_limits"
        return {of: control_rules.Limits(**named)}
    return {}


def staying(age: timedelta) -> Passes:
    """Whether an order that old stays open."""

    def stays(control: model.Control | None) -> bool:
        most = getattr(control, "stale_order_millis", None)
        return most is None or age <= timedelta(milliseconds=most)

    return stays


def orders() -> list[Passes]:
    """So many that each value a control can have here lets another set of them pass."""
    sell = replace(BUY, side=OrderSide.SELL, quantity=Decimal(2), limit_price=None)
    found = [passing(BUY), passing(sell), passing(replace(sell, quantity=Decimal(3)))]
    found += [passing(BUY, NOON.replace(hour=hour, minute=minute)) for hour in range(24) for minute in (0, 59)]
    found += [passing(BUY, symbol_orders=OrderCounts(few, 0)) for few in (1, 2, 3, None)]
    found += [passing(BUY, symbol_orders=OrderCounts(0, few)) for few in (1, 2, 3, None)]
    for price in map(Decimal, ("0.01", "1", "2", "3", "4")):
        found += [
            passing(
                replace(BUY, quantity=Decimal(quantity), limit_price=price),
                reference_price=ReferencePrice(price, "quote", NOON),
            )
            for quantity in (1, 2, 3, 4)
        ]
    found += [
        passing(replace(BUY, limit_price=price), reference_price=reference)
        for price in map(Decimal, ("0.0101", "0.0102", "0.0103", "0.0104"))
        for reference in (ReferencePrice(Decimal("0.01"), "quote", NOON), None)
    ]
    return found + [staying(timedelta(milliseconds=millis)) for millis in (500, 1500, 2500, 3500)]


ORDERS = orders()


def desk_orders() -> list[Passes]:
    """Of each symbol, buying and selling short, with so many orders open and so much held."""
    sell = replace(BUY, side=OrderSide.SELL)
    found = [passing(replace(BUY, symbol=symbol)) for symbol in ("AAPL", "MSFT", "TSLA", "NVDA")]
    found += [passing(sell, position_quantity=Decimal(held)) for held in (0, 1)]
    found += [passing(BUY, position_quantity=Decimal(held)) for held in (0, 1, 2, 3)]
    return found + [passing(BUY, account_orders=OrderCounts(0, 0, count)) for count in (0, 1, 2, 3)]


DESK_ORDERS = desk_orders()


@given(of_desks, of_desks)
@settings(max_examples=500, deadline=None)
def test_what_passed_limits_of_a_desk_passes_after_they_were_loosened(
    before: model.AccountLimits, after: model.AccountLimits
) -> None:
    if model.is_loosening(before, after):
        assert all(passes(after) for passes in DESK_ORDERS if passes(before))


@given(of_desks, st.data())
@settings(max_examples=500, deadline=None)
def test_a_change_of_one_limit_is_loosening_exactly_if_it_refuses_nothing_more(
    other: model.AccountLimits, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(["max_position_quantity", "max_open_orders", "allow_short", "allowed_symbols",
                                      "denied_symbols"]))  # fmt: skip
    free = replace(other, max_position_quantity=None, max_open_orders=None, allow_short=None, allowed_symbols=None,
                   denied_symbols=None)  # fmt: skip
    before = replace(free, **{name: getattr(data.draw(of_desks), name)})
    after = replace(free, **{name: getattr(other, name)})

    assert model.is_loosening(before, after) == all(passes(after) for passes in DESK_ORDERS if passes(before))


@given(changes)
@settings(max_examples=1_000, deadline=None)
def test_a_change_is_loosening_exactly_if_whatever_passed_before_passes_afterwards(
    change: tuple[model.Control, model.Control | None],
) -> None:
    before, after = change

    assert model.is_loosening(before, after) == all(passes(after) for passes in ORDERS if passes(before))


@given(times)
def test_every_window_covers_itself_and_is_covered_by_no_window_at_all(control: model.SymbolTime) -> None:
    window = control_rules.Window(control.trading_start, control.trading_end)

    assert window.covers(window) and control_rules.Window().covers(window)


@pytest.fixture
def lapsed(setting: Any) -> Callable[..., Any]:
    """Controls of an account whose organization had Controls Premium when they were set, and has it no more."""

    def make(*writes: tuple[str, str, dict[str, Any]]) -> Any:
        organization = setting.identity.organization(entitlements=["controls_premium"])
        controls = setting.controls(organization, setting.account(organization))
        for method, path, body in writes:
            assert controls.call(method, path, body).status_code == 201
        with setting.platform.admin() as admin:
            admin.execute(text("DELETE FROM identity.entitlement WHERE organization_id = :id"), {"id": organization.id})
        return controls

    return make


ORGANIZATION = "/v1/controls/organization"
LIMITS = {"max_quantity": "10", "max_orders_per_day": 5}
WINDOW = {"trading_start": "09:00:00", "trading_end": "17:00:00", "stale_order_millis": 5000}
CONTROLS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # name: method, path, as it was set, looser, stricter
    "account": ("PUT", "", {"trading_state": "REDUCING"}, {"trading_state": "ACTIVE"}, {"trading_state": "HALTED"}),
    "organization": (
        "PUT", ORGANIZATION, {"trading_state": "HALTED"}, {"trading_state": "REDUCING"}, {"trading_state": "HALTED"},
    ),
    "symbol": (
        "PUT", "/symbols/AAPL", {"manually_disabled": True}, {"manually_disabled": False}, {"manually_disabled": True},
    ),
    "window": ("PATCH", "/symbols/AAPL/time", WINDOW, {"trading_end": "18:00:00"}, {"trading_start": "09:00:01"}),
    "age": ("PATCH", "/symbols/AAPL/time", WINDOW, {"clear": ["stale_order_millis"]}, {"stale_order_millis": 4999}),
    "limits": ("PUT", "/limits", LIMITS, {"max_quantity": "11"}, LIMITS | {"max_orders_per_minute": 1}),
    "limits of a symbol": (
        "PUT", "/symbols/AAPL/limits", LIMITS, LIMITS | {"max_quantity": "10.1"}, LIMITS | {"max_quantity": "9"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTROLS)
def test_without_premium_a_control_is_loosened_and_removed_but_not_tightened(lapsed: Any, name: str) -> None:
    method, path, first, looser, stricter = CONTROLS[name]
    controls = lapsed((method, path, first))

    assert controls.call(method, path, looser).json["version"] == 2
    refused = controls.call(method, path, stricter)
    assert (refused.status_code, refused.json["code"]) == (403, "entitlement_required")
    assert refused.json["entitlement"] == "controls_premium"
    assert controls.call("DELETE", path, If_Match='"2"').status_code == 204


@pytest.mark.parametrize("name", CONTROLS)
def test_without_premium_no_control_is_set(lapsed: Any, name: str) -> None:
    method, path, first, looser, _ = CONTROLS[name]
    controls = lapsed()

    for body in (first, {"trading_state": "ACTIVE"} if "trading_state" in looser else first):
        assert controls.call(method, path, body).json["code"] == "entitlement_required"
    assert controls.call("GET", path).json["code"] == "entitlement_required"
    assert controls.call("DELETE", path).status_code == 404
