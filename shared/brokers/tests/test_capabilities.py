"""What a broker cannot do is known before it is tried."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tip_brokers import Capabilities, ClientIds, Replacement, Requested, SymbolForm, inability
from tip_brokers.capabilities import ALL_KINDS, ALL_TIMES

SMALL = Capabilities(
    ClientIds.ECHO,
    kinds={"Limit": ("DAY",)},
    replacement=Replacement.NONE,
    symbols=SymbolForm(r"[A-Z]{1,5}", "AAPL"),
)
LARGE = Capabilities(ClientIds.UNIQUE, fractions=True, routing=True)
POSSIBLE = Requested("Limit", "DAY", Decimal(1), "AAPL", "AUTO")

requests = st.builds(
    Requested,
    st.sampled_from([*ALL_KINDS, "Trailing"]),
    st.sampled_from(ALL_TIMES),
    st.decimals(min_value="0.001", max_value=10, places=3),
    st.sampled_from(["AAPL", "BTC/USD", "A" * 6]),
    st.sampled_from(["AUTO", "DIRECT"]),
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
    ],
    ids=["symbol", "route", "kind", "time in force", "fraction", "replacement"],
)
def test_the_pointer_names_what_is_impossible(change: dict[str, object], pointer: str) -> None:
    found = inability(SMALL, POSSIBLE._replace(**change))

    assert found and found.pointer == pointer and found.detail


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
