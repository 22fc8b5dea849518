"""What a broker cannot do is known before it is tried."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tip_brokers import (
    Capabilities,
    ClientIds,
    ExitPair,
    Replacement,
    Requested,
    SymbolForm,
    inability,
    pair_inability,
)
from tip_brokers.capabilities import ALL_KINDS, ALL_TIMES

SMALL = Capabilities(
    ClientIds.ECHO,
    kinds={"Limit": ("DAY",)},
    replacement=Replacement.NONE,
    symbols=SymbolForm(r"[A-Z]{1,5}", "AAPL"),
)
LARGE = Capabilities(
    ClientIds.UNIQUE, fractions=True, routing=True, notional_orders=ALL_TIMES, extended_hours=ALL_KINDS
)
POSSIBLE = Requested("Limit", "DAY", Decimal(1), "AAPL", "AUTO")

requests = st.builds(
    Requested,
    st.sampled_from([*ALL_KINDS, "Trailing"]),
    st.sampled_from(ALL_TIMES),
    st.decimals(min_value="0.001", max_value=10, places=3) | st.none(),
    st.sampled_from(["AAPL", "BTC/USD", "A" * 6]),
    st.sampled_from(["AUTO", "DIRECT"]),
    st.booleans(),
)


def test_a_possible_order_is_possible() -> None:
    assert inability(SMALL, POSSIBLE) is None


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"symbol": "BTC/USD"}, "/symbol"),
        ({"route_strategy": "DIRECT"}, "/route_strategy"),
        ({"kind": "Market"}, "/spec"),
        ({"time_in_force": "GTC"}, "/spec/Limit/time_in_force"),
        ({"quantity": Decimal("1.5")}, "/spec/Limit/quantity"),
        ({"symbol": None, "route_strategy": None}, ""),
        ({"quantity": None}, "/spec/Limit/notional"),
        ({"extended_hours": True}, "/extended_hours"),
    ],
    ids=["symbol", "route", "kind", "time in force", "fraction", "replacement", "notional", "extended hours"],
)
def test_the_pointer_names_what_is_impossible(change: dict[str, object], pointer: str) -> None:
    found = inability(SMALL, POSSIBLE._replace(**change))

    assert found and found.pointer == pointer and found.detail


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"quantity": None, "time_in_force": "GTC"}, "/spec/Market/time_in_force"),
        ({"quantity": None, "time_in_force": "DAY"}, None),
        ({"kind": "Limit", "extended_hours": True}, None),
        ({"kind": "Limit", "extended_hours": True, "time_in_force": "GTC"}, "/extended_hours"),
        ({"kind": "Market", "extended_hours": True}, "/extended_hours"),
        (
            {"kind": "Limit", "extended_hours": True, "time_in_force": "GTC", "symbol": None, "route_strategy": None},
            "/spec/Limit/time_in_force",
        ),
    ],
)
def test_what_goes_with_a_time_in_force_alone_is_possible_with_that(
    change: dict[str, object], pointer: str | None
) -> None:
    can = Capabilities(ClientIds.UNIQUE, notional_orders=("DAY",), extended_hours={"Limit": ("DAY",)})

    found = inability(can, POSSIBLE._replace(**{"kind": "Market", **change}))

    assert (found and found.pointer) == pointer


def test_a_whole_quantity_may_be_written_with_decimals() -> None:
    assert inability(SMALL, POSSIBLE._replace(quantity=Decimal("3.000"))) is None


@given(requests)
def test_whoever_can_do_everything_refuses_only_what_no_order_is(requested: Requested) -> None:
    known = requested.time_in_force in ALL_KINDS.get(requested.kind, ())

    assert (inability(LARGE, requested) is None) == known


@given(requests)
def test_nothing_is_possible_with_less_that_is_impossible_with_more(requested: Requested) -> None:
    if inability(SMALL, requested) is None:
        assert inability(LARGE, requested) is None


PAIRS = Capabilities(ClientIds.UNIQUE, exit_pairs=("DAY", "GTC"), symbols=SymbolForm(exit_pairs="[^/]+"))
PAIR = ExitPair((("Limit", "GTC"), ("Stop", "GTC")), Decimal(10), "AAPL")


def test_two_exits_are_possible_as_one_order_or_as_two_that_share_the_position() -> None:
    shared = Capabilities(ClientIds.UNIQUE, shared_exits=True)

    assert pair_inability(PAIRS, PAIR) is None
    assert pair_inability(PAIRS, PAIR._replace(exits=(("StopLimit", "DAY"), ("Limit", "DAY")))) is None
    assert pair_inability(shared, PAIR._replace(quantity=Decimal("1.5"), symbol="BTC/USD")) is None
    assert "reserves a position" in str(pair_inability(SMALL, PAIR))


@pytest.mark.parametrize(
    "change",
    [
        {"exits": (("Limit", "GTC"), ("Limit", "GTC"))},
        {"exits": (("Limit", "GTC"), ("TrailingStop", "GTC"))},
        {"exits": (("Stop", "GTC"), ("StopLimit", "GTC"))},
        {"exits": (("Limit", "DAY"), ("Stop", "GTC"))},
        {"exits": (("Limit", "IOC"), ("Stop", "IOC"))},
        {"quantity": Decimal("1.5")},
        {"symbol": "BTC/USD"},
        {"extended_hours": True},
    ],
)
def test_two_exits_that_cannot_be_one_order_are_named(change: dict[str, object]) -> None:
    assert "orders that cancel each other" in str(pair_inability(PAIRS, PAIR._replace(**change)))
