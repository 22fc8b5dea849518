"""What is read of the API's answers, and what is put into requests."""

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from decimal import Decimal

import pytest

import tip_client as tip
from tip_client.errors import Reason
from tip_client.models.accounts import Capabilities
from tip_client.models.holdings import Balances
from tip_client.models.identity import CreatedApiKey
from tip_client.models.trading import Statistics
from tip_client.records import parse
from tip_client.request import at, given
from tip_client.waiting import next_delay, wanted_statuses

BALANCES = {
    "account_id": "a",
    "currency": "USD",
    "cash": "10.10",
    "equity": None,
    "updated_at": "2026-01-05T12:00:00.000001Z",
    "added_later": {"what": "ever"},
}
KEY = {
    "id": "k",
    "name": "bot",
    "environment": "paper",
    "permissions": ["intent:edit", "added:later"],
    "prefix": "tip_paper_x",
    "disabled": False,
    "created_at": "2026-01-05T12:00:00Z",
    "key": "tip_paper_secret",
}


def test_decimals_are_exact_and_moments_aware() -> None:
    balances = parse(Balances, BALANCES)

    assert str(balances.cash) == "10.10"
    assert balances.updated_at == datetime(2026, 1, 5, 12, 0, 0, 1, UTC)


def test_what_was_added_later_is_passed_over_and_what_may_be_absent_is_none() -> None:
    balances = parse(Balances, BALANCES)

    assert (balances.equity, balances.buying_power, balances.source) == (None, None, None)


def test_what_an_older_platform_does_not_have_keeps_its_default() -> None:
    older = {
        "kinds": {"Market": ["DAY"]}, "replacement": "native", "client_ids": "unique", "streams": True, "quotes": True,
        "executions": True, "fractions": True, "routing": False, "symbol_pattern": ".+", "symbol_example": "AAPL",
        "calls_per_minute": None,
    }  # fmt: skip
    newer = older | {"notional_orders": ["DAY"], "extended_hours": {"Limit": ["DAY"]}, "shared_exits": True}
    newer["exit_pairs"] = ["DAY"]

    first, second = parse(Capabilities, older), parse(Capabilities, newer)

    assert (first.notional_orders, first.extended_hours, first.shared_exits) == ((), {}, False)
    assert (first.exit_pairs, second.exit_pairs) == ((), ("DAY",))
    assert (second.notional_orders, second.extended_hours, second.shared_exits) == (("DAY",), {"Limit": ["DAY"]}, True)


def test_a_word_that_was_added_later_is_kept() -> None:
    status = tip.Status("AWAITING_MOON")

    assert (status, status.is_known, status.is_terminal) == ("AWAITING_MOON", False, False)
    assert tip.Status("FILLED") is tip.Status.FILLED
    assert {tip.Environment.PAPER: 1}["paper"] == 1


def test_results_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        parse(Balances, BALANCES).cash = Decimal(0)  # type: ignore[misc]


def test_a_created_key_is_not_shown_by_accident() -> None:
    key = parse(CreatedApiKey, KEY)

    assert key.key == "tip_paper_secret"
    assert "secret" not in repr(key)


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        "text",
        {},
        {**KEY, "disabled": "no"},
        {**KEY, "permissions": "intent:edit"},
        {**KEY, "created_at": "2026-01-05T12:00:00"},
        {**KEY, "created_at": 7},
        {**KEY, "name": 7},
    ],
    ids=str,
)
def test_an_answer_that_does_not_fit_is_unexpected_and_not_repeated(broken: object) -> None:
    with pytest.raises(tip.UnexpectedAnswer) as raised:
        parse(CreatedApiKey, broken)

    assert "tip_paper" not in str(raised.value)


def test_a_name_that_python_keeps_for_itself_has_an_underscore() -> None:
    counts = {"total_actions": 0, "total_intents": 0, "by_type": {}, "by_status": {}, "by_symbol": [], "by_tag": []}
    latencies = dict.fromkeys(("submit_p50", "submit_p95", "fill_p50", "fill_p95"), 1.5)
    about = {"account_id": "a", "time_window": "last_day", "from": KEY["created_at"], "to": KEY["created_at"]}

    found = parse(Statistics, {**about, **counts, "refusals": {}, "fill_rate": None, "latency_ms": latencies})

    assert found.from_ == found.to


@pytest.mark.parametrize("wrong", [0.1, True])
def test_a_quantity_is_never_a_float(wrong: object) -> None:
    with pytest.raises(TypeError):
        tip.Market("AAPL", "BUY", wrong)  # type: ignore[arg-type]


def test_an_order_is_the_payload_of_a_create() -> None:
    order = tip.StopLimit("TSLA", "SELL", 5, stop="240", limit="239.5", client_id="c-1", tags=["a"])

    assert order.to_json() == {
        "symbol": "TSLA",
        "order_side": "SELL",
        "spec": {"StopLimit": {"quantity": "5", "stop_price": "240", "limit_price": "239.5"}},
        "client_id": "c-1",
        "tags": ["a"],
    }
    assert tip.Market("A", "BUY", "1E+2").to_json()["spec"] == {"Market": {"quantity": "100"}}


def test_a_trailing_stop_has_one_trail() -> None:
    order = tip.TrailingStop("AAPL", "SELL", 1, trail_percent="2.5", time_in_force="GTC")

    terms = {"quantity": "1", "trail_percent": "2.5", "time_in_force": "GTC"}
    assert order.to_json()["spec"] == {"TrailingStop": terms}
    assert tip.OrderSpec.from_json({"TrailingStop": terms}) == order.spec
    assert order.spec.changed(trail_percent=3).trail_percent == 3
    for trails in ({}, {"trail": 1, "trail_percent": 1}):
        with pytest.raises(tip.ConfigurationError):
            tip.TrailingStop("AAPL", "SELL", 1, **trails)


def test_a_market_order_has_a_quantity_or_a_notional() -> None:
    order = tip.Market("AAPL", "BUY", notional="500")

    assert order.to_json()["spec"] == {"Market": {"notional": "500"}}
    assert tip.OrderSpec.from_json({"Market": {"notional": "500"}}) == order.spec
    assert tip.OrderSpec.from_json({"order_kind": "Market", "quantity": "", "notional": "500"}) == order.spec
    for sizes in ({}, {"quantity": 1, "notional": 500}):
        with pytest.raises(tip.ConfigurationError):
            tip.Market("AAPL", "BUY", **sizes)


def test_an_order_for_extended_hours_says_so() -> None:
    order = tip.Limit("AAPL", "BUY", 2, limit="180", extended_hours=True)

    assert order.to_json()["extended_hours"] is True
    assert "extended_hours" not in tip.Limit("AAPL", "BUY", 2, limit="180").to_json()


def test_a_replacement_keeps_what_it_does_not_change() -> None:
    spec = tip.Limit("AAPL", "BUY", 2, limit="180", time_in_force="GTC").spec

    assert spec.changed(limit="181") == tip.Limit("AAPL", "BUY", 2, limit="181", time_in_force="GTC").spec


def test_a_moment_without_a_zone_is_refused() -> None:
    assert given(from_=datetime(2026, 1, 5, tzinfo=UTC), to=None) == {"from": "2026-01-05T00:00:00+00:00"}
    with pytest.raises(tip.ConfigurationError):
        given(to=datetime(2026, 1, 5))


def test_a_name_in_a_path_is_one_segment_whatever_it_holds() -> None:
    assert at("/v1/x/{}", "BTC/USD?a=b#c") == "/v1/x/BTC%2FUSD%3Fa%3Db%23c"
    for name in ("", ".", ".."):
        with pytest.raises(tip.ConfigurationError):
            at("/v1/x/{}", name)


def test_problems_say_what_they_say_however_they_are_broken() -> None:
    reasons = [{"code": "SYMBOL_DISABLED", "control": "symbol_manual", "version": 4, "message": "earnings"}, "text"]
    error = tip.ControlRejected(422, "control_rejected", "no", {"reasons": reasons, "errors": "none"})

    assert error.reasons == (Reason("SYMBOL_DISABLED", "symbol_manual", 4, "earnings"),)
    assert (error.errors, error.pointer) == ((), None)


def test_waiting_polls_ever_less_often_and_to_the_end_of_its_time() -> None:
    assert next_delay(0.0, None) == 0.02
    assert next_delay(0.3, None) == pytest.approx(0.1)
    assert next_delay(60.0, None) == 1.0
    assert next_delay(9.9, 10.0) == pytest.approx(0.1)
    assert next_delay(10.0, 10.0) is None


def test_a_status_to_wait_for_must_exist() -> None:
    assert wanted_statuses(["FILLED"]) == {tip.Status.FILLED}
    with pytest.raises(tip.ConfigurationError):
        wanted_statuses(["FILLLED"])
