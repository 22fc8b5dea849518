"""What is recorded of the facts of a decision."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from control_rules import Facts, Limits, OrderCounts, Switch, TimeControl, TradingState, recorded
from control_rules.recording import LONGEST_LIST

NOW = datetime(2026, 1, 5, 12, 0, 0, 5, tzinfo=UTC)
FACTS = Facts("UTC", account_disabled=False, account_version=3)


def test_what_is_not_set_or_not_known_is_absent() -> None:
    assert recorded(FACTS, NOW) == {
        "now": "2026-01-05T12:00:00.000005Z",
        "time_zone": "UTC",
        "account_disabled": False,
        "account_version": 3,
        "price_max_age": "PT60S",
    }


def test_controls_have_their_values_and_facts_theirs() -> None:
    facts = replace(
        FACTS,
        account_switch=Switch(TradingState.REDUCING, 2, "calm down"),
        symbol_time=TimeControl(4, trading_start=time(9, 30)),
        symbol_limits=Limits(1, max_notional=Decimal("1E+3")),
        symbol_orders=OrderCounts(last_minute=0),
        position_quantity=Decimal("-2.50"),
    )

    found = recorded(facts, NOW)

    assert found["account_switch"] == {"trading_state": "REDUCING", "version": 2, "reason": "calm down"}
    assert found["symbol_time"] == {"version": 4, "trading_start": "09:30:00"}
    assert found["symbol_limits"] == {"version": 1, "max_notional": "1000"}
    assert found["symbol_orders"] == {"last_minute": 0}
    assert found["position_quantity"] == "-2.50"


class Price(NamedTuple):
    amount: Decimal
    source: str
    read_at: datetime


@dataclass(frozen=True, slots=True)
class MoreFacts(Facts):
    """As a rule of another day may need them."""

    price: Price | None = None
    denied_symbols: frozenset[str] = frozenset()


def test_facts_that_come_later_are_recorded_too() -> None:
    price = Price(Decimal(7), "quote", NOW)

    found = recorded(MoreFacts("UTC", False, 1, price=price, denied_symbols=frozenset({"B", "A"})), NOW)

    assert found["price"] == {"amount": "7", "source": "quote", "read_at": "2026-01-05T12:00:00.000005Z"}
    assert found["denied_symbols"] == ["A", "B"]


def test_a_long_list_is_recorded_by_its_length_and_hash() -> None:
    symbols = frozenset(f"S{number}" for number in range(LONGEST_LIST + 1))
    facts = MoreFacts("UTC", False, 1, denied_symbols=symbols)
    other = replace(facts, denied_symbols=symbols ^ {"S0", "T"})

    kept = [recorded(each, NOW)["denied_symbols"] for each in (facts, other)]

    assert [one["count"] for one in kept] == [21, 21]
    assert kept[0]["sha256"] != kept[1]["sha256"]


@given(st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.booleans(), st.decimals(), st.uuids(), st.times())))
def test_whatever_is_recorded_is_json(values: dict[str, Any]) -> None:
    @dataclass(frozen=True)
    class AnyFacts(Facts):
        values: Any = None

    found = recorded(AnyFacts("UTC", False, 1, values=values), NOW)

    assert json.loads(json.dumps(found)) == found
