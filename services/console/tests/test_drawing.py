"""What is drawn: windows on a day, limits and their use, plots of an hour. And changes, in words."""

from datetime import UTC, datetime, timedelta

import pytest

from console import controls, limits, overview, plots, windows
from console.routes import filters

NOON = datetime(2026, 7, 1, 12, 0, 30, tzinfo=UTC)
FACTS = {
    "account_orders_last_minute": 3, "account_orders_last_day": 40, "account_open_orders": 2, "other_exposure": None,
    "equity": "9000", "day_start_equity": "10000", "symbol_orders_last_minute": 1, "symbol_orders_last_day": 5,
    "symbol_open_orders": 1, "position_quantity": "-4", "open_quantity": "1", "opposite_open_quantity": "6",
}  # fmt: skip


@pytest.mark.parametrize(
    ("start", "end", "spans", "is_open"),
    [
        ("09:30:00", "16:00:00", ((570, 390),), False),
        ("08:00:00", "08:01:00", ((480, 1),), True),
        ("22:00:00", "08:01:00", ((0, 481), (1320, 120)), True),
        ("08:01:00", None, ((481, 959),), False),
        (None, "08:01:00", ((0, 481),), True),
    ],
)
def test_a_window_is_drawn_where_the_account_is(start, end, spans, is_open):
    bar = windows.bar(start, end, "America/New_York", NOON)

    assert (bar.spans, bar.is_open, bar.now) == (spans, is_open, 8 * 60)


def test_a_zone_that_is_not_known_here_draws_no_now():
    assert windows.bar("09:00", "10:00", "Nowhere/At_All", NOON).now is None


def test_what_is_used_of_an_account_is_what_a_submit_would_count():
    control = {"max_open_orders": 2, "max_daily_loss": "2000", "max_gross_exposure": "1", "max_notional": "5",
               "max_position_quantity": "8", "version": 1}  # fmt: skip
    held = [{"symbol": "AAPL", "quantity": "-4", "market_value": None}, {"symbol": "MSFT", "quantity": "2"}]
    found = {usage.limit.name: usage for usage in limits.usages(control, limits.used_of_account(FACTS, held))}

    assert [found["max_open_orders"].is_reached, found["max_daily_loss"].share] == [True, 50.0]
    assert found["max_gross_exposure"].share is None and "price" in found["max_gross_exposure"].note
    assert found["max_notional"].share is None and found["max_position_quantity"].percent == 50
    assert found["max_position_quantity"].note.startswith("AAPL")
    assert "version" not in found


def test_the_largest_position_is_not_known_while_one_lacks_a_price():
    control, priced = {"max_position_notional": "100"}, {"symbol": "MSFT", "quantity": "2", "market_value": "50"}
    unpriced = {"symbol": "AAPL", "quantity": "4", "market_value": None}
    [unknown] = limits.usages(control, limits.used_of_account(FACTS, [priced, unpriced]))
    [known] = limits.usages(control, limits.used_of_account(FACTS, [priced, unpriced | {"quantity": "0"}]))

    assert (unknown.used, unknown.note) == (None, "a price is not known")
    assert (known.percent, known.note[:4]) == (50, "MSFT")


def test_what_is_used_of_a_symbol_is_the_greatest_size_that_fills_can_lead_to():
    used = limits.used_of_symbol(FACTS, "2.5")

    assert used["max_position_quantity"][0] == 10 and used["max_position_notional"][0] == 25
    assert limits.used_of_symbol(FACTS, None)["max_position_notional"] == (None, "no price is known")


def test_beyond_its_limit_a_bar_is_full_and_says_how_much():
    [usage] = limits.usages({"max_open_orders": 1}, {"max_open_orders": (3, "")})

    assert (usage.share, usage.percent, usage.is_reached) == (100.0, 300, True)


def test_counts_are_put_into_their_minutes_from_zero():
    axis = plots.Axis.until(NOON)
    plot = plots.counts(
        axis, [NOON, NOON - timedelta(seconds=20), NOON - timedelta(minutes=59), NOON - timedelta(hours=1)]
    )

    assert [(bar.minute, bar.value, bar.height) for bar in plot.bars] == [(0, 1, 50), (59, 2, 100)]
    assert (plot.top, plot.greatest) == (2, 2)
    assert plots.counts(axis, []).top == 1


def test_latencies_of_a_minute_are_its_p99_with_its_p50_within():
    samples = [(NOON, float(value)) for value in range(1, 201)]
    [bar] = plots.latencies(plots.Axis.until(NOON), samples).bars

    assert (bar.value, bar.lower, bar.height, bar.lower_height) == (198, 100, 99, 50)


def test_a_percentile_of_nothing_is_none_and_of_one_is_it():
    assert plots.percentile([], 99) is None
    assert plots.percentile([7.0], 50) == plots.percentile([7.0], 99) == 7.0


@pytest.mark.parametrize(("value", "top"), [(0, 1), (1, 1), (3, 5), (5, 5), (11, 20), (60, 100), (1000, 1000)])
def test_the_top_of_a_plot_is_a_round_number(value, top):
    assert plots.nice(value, whole=True) == top


def test_the_time_to_fill_is_of_filled_orders_alone():
    moment = "2026-07-01T12:00:00.250000Z"
    states = [{"status": "FILLED", "updated_at": moment}, {"status": "ACCEPTED", "updated_at": moment}]
    orders = [{"created_at": "2026-07-01T12:00:00Z", "state": state} for state in states]

    assert [value for _, value in overview.fill_times(orders)] == [250.0]


def test_a_window_form_clears_what_it_leaves_empty():
    change = controls.set_window("BTC/USD", "09:30", "", "90")

    assert change.path == "/symbols/BTC%2FUSD/time"
    assert change.body == {"trading_start": "09:30:00", "stale_order_millis": 90_000, "clear": ["trading_end"]}
    assert controls.set_window("A", "", "", "soon").body["stale_order_millis"] == "soon"


def test_a_window_says_what_it_does():
    assert controls.set_window("A", "09:30", "16:00", "5").words.endswith(
        ": from 09:30 to 16:00, orders are stale after 5 s"
    )
    assert controls.set_window("A", "", "", "").words.endswith(": all day, no order is ever stale")


def test_limits_say_what_they_remove():
    before = limits.set_values({"max_quantity": "5", "max_notional": "9", "allow_short": None, "version": 3})
    change = controls.set_limits("A", {"max_quantity": "6"}, before)

    assert change.words == "Set limits of A: max quantity 6; remove max notional"
    assert controls.set_limits(None, {}, before).words.endswith(": unchanged; remove max quantity, max notional")


def test_a_change_says_what_is_different_and_nothing_else():
    before = {"max_quantity": "5", "allow_short": None}

    assert controls.difference(before, {"max_quantity": "6", "allow_short": False}) == "max quantity 6, allow short no"
    assert controls.difference(before, None) == "removed"
    assert controls.difference(None, {"reason": "x" * 100})[-3:] == "xx…"


@pytest.mark.parametrize(
    ("text", "is_id"),
    [("0190a6c2-8d7e-7c3b-9f21-3d5b8c7e6a10", True), ("somebody.with-a-long-name@acme.example", False), ("", False)],
)
def test_an_address_is_no_id(text, is_id):
    assert filters.is_id(text) is is_id


def test_a_key_without_an_end_is_never_past():
    assert filters.is_past("2026-01-05T00:00:00Z") and not filters.is_past(None)
    assert not filters.is_past("2999-01-05T00:00:00Z")


@pytest.mark.parametrize(
    ("millis", "shown"),
    [(None, "\N{EN DASH}"), (41.7, "41.7 ms"), (999.4, "999 ms"), (1250.0, "1.25 s"), (90e3, "1.5 min")],
)
def test_durations_have_the_unit_that_fits(millis, shown):
    assert filters.duration(millis) == shown
