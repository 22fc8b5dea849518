"""What `tip` prints, without a platform."""

import json
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import NamedTuple

import pytest

import tip_client
from tip.amounts import AMOUNT
from tip.control_text import difference, trading_hours
from tip.exits import Failure
from tip.lookup import find
from tip.moments import age, clock, duration_of, moment_of
from tip.names import actor_name
from tip.order_ids import chosen
from tip.order_text import described, event_line, outcome_line
from tip.plain import json_of, json_text, plain_table, printable, short
from tip.timeline_text import timeline_lines
from tip_client.models.controls import SymbolTimeControl
from tip_client.models.timeline import TimelineEntry
from tip_client.models.trading import Actor, OrderRecord
from tip_client.orders import OrderSpec
from tip_client.records import parse

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
LIMIT = OrderSpec(tip_client.OrderKind.LIMIT, Decimal("1.50"), Decimal("180"))
STATE = {
    "status": "FILLED", "filled_quantity": "1", "leaves_quantity": "0", "average_fill_price": "179.98",
    "broker_order_id": "b", "reason_code": None, "outcome": None, "updated_at": "2026-01-05T12:00:00.080Z",
    "group_id": None, "group_role": None,
}  # fmt: skip
ORDER = {
    "intent_id": "93327def-0000-4000-8000-000000000001", "client_id": None, "tags": ["alpha"], "symbol": "AAPL",
    "order_side": "BUY", "route_strategy": "AUTO", "extended_hours": False,
    "spec": {"Limit": {"quantity": "1", "limit_price": "180"}}, "state": STATE, "created_at": "2026-01-05T12:00:00Z",
}  # fmt: skip
ACTION = {
    "id": "a", "sequence": 2, "intent_id": ORDER["intent_id"], "account_id": "c", "organization_id": "o",
    "environment": "paper", "command": {"type": "CREATE", "payload": {}}, "symbol": "AAPL", "order_side": "BUY",
    "spec": None, "route_strategy": "AUTO", "ref_intent_id": None, "actor": {"type": "api_key", "id": "k"},
    "reason": None, "controls": {"decision": "ALLOWED", "checks": [], "facts": None},
    "created_at": "2026-01-05T12:00:00Z", "state": STATE, "previous_hash": "0", "hash": "1",
}  # fmt: skip


class KeyLike(NamedTuple):
    id: str
    name: str


def order(**state):
    record = parse(OrderRecord, {**ORDER, "state": {**STATE, **state}, "last_action": ACTION})
    return tip_client.Order.of(None, record)


def test_an_outcome_is_one_line():
    assert outcome_line(order(), "1744368c0000") == (
        "FILLED 1 AAPL @ 179.98   80 ms   intent 93327def   trace 1744368c"
    )
    refused = order(status="REJECTED", filled_quantity="0", average_fill_price=None, reason_code="NO_FUNDS")
    assert outcome_line(refused) == "REJECTED 1 AAPL (NO_FUNDS)   80 ms   intent 93327def"
    partly = order(status="CANCELED", filled_quantity="0.4", leaves_quantity="0")
    assert outcome_line(partly) == "CANCELED 0.4 of 1 AAPL @ 179.98   80 ms   intent 93327def"
    resting = order(status="ACCEPTED", filled_quantity="0", average_fill_price=None)
    assert outcome_line(resting) == "ACCEPTED 1 AAPL   intent 93327def"


def test_a_thing_is_found_by_name_id_or_beginning():
    keys = [KeyLike("93327def-1", "bot"), KeyLike("93327aaa-2", "bot"), KeyLike("1744368c-3", "9332")]

    def found(text):
        return find(keys, text, "key", lambda key: key.name).id

    assert [found(text) for text in ("93327d", "93327DEF-1", "1744", "1744368c-3")] == [
        "93327def-1", "93327def-1", "1744368c-3", "1744368c-3",
    ]  # fmt: skip
    for several in ("bot", "93327", "9332"):
        with pytest.raises(Failure) as caught:
            found(several)
        assert caught.value.exit_code == 2
    for none in ("", "174", "robot"):
        with pytest.raises(Failure) as caught:
            found(none)
        assert (caught.value.exit_code, caught.value.code) == (1, "not_found")


def test_a_duration_is_a_number_and_a_unit():
    assert [duration_of(text) for text in ("90s", "15m", "2d")] == [
        timedelta(seconds=90), timedelta(minutes=15), timedelta(days=2),
    ]  # fmt: skip
    assert [duration_of(text) for text in ("", "1", "s", "-1s", "1y", "1.5h", "²s")] == [None] * 7


def test_a_change_of_a_control_is_what_it_says_now():
    assert difference(None, {"max_quantity": "5", "max_notional": None}) == "max_quantity 5"
    assert difference({"max_quantity": "5"}, {"max_quantity": None, "max_notional": "9"}) == (
        "max_quantity none, max_notional 9"
    )
    assert difference({"max_quantity": "5"}, None) == "removed"


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        ("09:30:00", "16:00:30", "09:30 to 16:00:30 UTC"),
        ("09:30:00", None, "09:30 to 24:00 UTC"),
        (None, "16:00:00", "00:00 to 16:00 UTC"),
        (None, None, "-"),
    ],
)
def test_trading_hours_run_from_midnight_to_midnight_where_a_bound_is_not_set(start, end, shown):
    about = {"account_id": "a", "organization_id": "o", "symbol": "AAPL", "time_zone": "UTC", "version": 1}
    moments = {"created_at": "2026-01-05T12:00:00Z", "updated_at": "2026-01-05T12:00:00Z"}

    control = parse(SymbolTimeControl, {**about, **moments, "trading_start": start, "trading_end": end})

    assert trading_hours(control) == shown


def test_json_holds_nothing_that_a_terminal_obeys():
    shown = json_text({"reason": "\x1b \x9b31m \u202e é"})

    assert shown.isprintable() and shown.isascii() and json.loads(shown) == {"reason": "\x1b \x9b31m \u202e é"}


def test_an_order_is_described_by_its_prices():
    assert described("BUY", LIMIT, "AAPL") == "BUY 1.50 AAPL limit 180"
    stop = OrderSpec(tip_client.OrderKind.STOP_LIMIT, Decimal(5), Decimal("239.5"), Decimal(240))
    assert described("SELL", stop, "TSLA") == "SELL 5 TSLA stop 240 limit 239.5"
    assert described("SELL", OrderSpec(tip_client.OrderKind.MARKET, Decimal(5)), "TSLA") == "SELL 5 TSLA market"
    trailing = tip_client.TrailingStop("TSLA", "SELL", 5, trail_percent="2.5").spec
    assert described("SELL", trailing, "TSLA") == "SELL 5 TSLA trail 2.5%"
    assert described("BUY", tip_client.Market("TSLA", "BUY", notional=500).spec, "TSLA") == "BUY for 500 TSLA market"


def test_json_is_the_record_of_the_api():
    shown = json_of(order())

    assert shown == {**ORDER, "spec": {"Limit": {"quantity": "1", "limit_price": "180"}},
                     "state": {**STATE, "updated_at": "2026-01-05T12:00:00.080000Z"},
                     "last_action": shown["last_action"]}  # fmt: skip
    assert "_client" not in shown


def test_json_has_exact_amounts_and_moments_in_utc():
    zone = datetime(2026, 1, 5, 13, tzinfo=UTC).astimezone()
    values = [Decimal("1E+3"), zone, time(9, 30), tip_client.Side.BUY, None, (1, True), {"a": Decimal("0.10")}]

    assert json.loads(json_text(values)) == [
        "1000", "2026-01-05T13:00:00Z", "09:30:00", "BUY", None, [1, True], {"a": "0.10"},
    ]  # fmt: skip


def test_columns_are_aligned_and_nothing_is_cut_off():
    rows = [("AAPL", "1"), ("A-LONG-SYMBOL", "100.5")]

    assert plain_table(("SYMBOL", "QUANTITY"), rows, right=["QUANTITY"]) == [
        "SYMBOL         QUANTITY",
        "AAPL                  1",
        "A-LONG-SYMBOL     100.5",
    ]


def test_nothing_that_a_terminal_obeys_is_printed():
    assert (
        printable("red \x1b[31m alert\r\n")
        == "red \N{REPLACEMENT CHARACTER}[31m alert" + 2 * "\N{REPLACEMENT CHARACTER}"
    )
    assert printable("é ✓") == "é ✓"


def test_a_moment_is_an_age_or_a_time():
    assert moment_of("90s", NOON) == NOON - timedelta(seconds=90)
    assert moment_of("1h", NOON) == NOON - timedelta(hours=1)
    assert moment_of("2w", NOON) == NOON - timedelta(weeks=2)
    assert moment_of("2026-01-05T12:00", NOON) == NOON == moment_of("2026-01-05T14:00+02:00", NOON)
    for wrong in ("1y", "h", "-1h", "yesterday", ""):
        with pytest.raises(ValueError):
            moment_of(wrong, NOON)


def test_a_time_of_another_day_has_its_date():
    local = NOON.astimezone()

    assert clock(NOON, now=NOON) == f"{local:%H:%M:%S}"
    assert clock(NOON, now=NOON + timedelta(days=3), milliseconds=True) == f"{local:%Y-%m-%d %H:%M:%S}.000"
    assert clock(None) == "-"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.003, "3 ms"), (12.4, "12 s"), (300, "5 min"), (7200, "2 h"), (4 * 86400, "4 d"), (None, "-")],
)
def test_an_age_has_the_unit_that_fits(seconds, shown):
    assert age(seconds) == shown


@pytest.mark.parametrize(
    "wrong", ["x", "0", "-1", "NaN", "Infinity", "", "1_0", "\N{ARABIC-INDIC DIGIT ONE}", "\N{FULLWIDTH DIGIT ONE}"]
)
def test_an_amount_is_a_number_above_zero(wrong):
    with pytest.raises(Exception, match="no number above zero"):
        AMOUNT.convert(wrong, None, None)


def test_a_prefix_means_one_order():
    assert chosen("93", ["93327def"]) == "93327def"
    with pytest.raises(Failure, match="2 orders") as two:
        chosen("93", ["93327def", "93aaaaaa"])
    with pytest.raises(Failure, match="none of the newest") as none:
        chosen("93", [])
    assert (two.value.exit_code, none.value.exit_code) == (2, 1)


def test_an_actor_has_a_name_where_the_caller_may_know_it():
    key = Actor("api_key", "1a2b3c4d-0000")
    assert actor_name(key, {key.id: "bot-key"}) == "key bot-key"
    assert actor_name(key, {}) == "key 1a2b3c4d"
    assert actor_name(Actor("system", "x"), {}) == "system"
    assert short(None) == "-"


def entry(**kinds):
    known = {"at": "2026-01-05T12:00:00.770Z", "kind": "X", "sequence": None, "action_id": None, "trace_id": None}
    return parse(TimelineEntry, {**known, **kinds})


def test_a_timeline_tells_who_what_and_how_long():
    checks = [{"control": "account", "version": 1, "outcome": "PASSED"}] * 2
    command = {
        "type": "CREATE", "payload": {}, "actor": {"type": "api_key", "id": "k"}, "reason": None,
        "controls": {"decision": "ALLOWED", "checks": checks, "facts": None},
        "from_status": None, "to_status": "PENDING", "request_id": "story-1",
    }  # fmt: skip
    call = {"verb": "create", "result": "ANSWERED", "reason": None, "duration_ms": 11.2, "times": 1,
            "last_at": "2026-01-05T12:00:00Z"}  # fmt: skip
    report = {"type": "BROKER_ORDER", "occurred_at": "2026-01-05T12:00:00Z", "from_status": None,
              "to_status": "FILLED", "broker_order_id": "d53d5540-1", "execution_id": None,
              "payload": {"quantity": "1", "filled_quantity": "1", "average_fill_price": "418.71"}}  # fmt: skip
    trade = {**report, "type": "BROKER_TRADE", "execution_id": "ab67962b-1", "to_status": None,
             "payload": {"quantity": "1", "price": "418.71"}}  # fmt: skip
    story = [entry(command=command), entry(call=call), entry(report=report), entry(report=trade)]

    assert [(word, text) for _, word, text in timeline_lines(story, {"k": "bot-key"})] == [
        ("submitted", "key bot-key, request story-1"),
        ("allowed", "account v1: 2 checks"),
        ("called", "create: answered in 11 ms"),
        ("filled", "1 of 1 @ 418.71, broker order d53d5540"),
        ("fill", "1 @ 418.71, execution ab67962b"),
    ]


def test_an_event_is_a_line_if_it_is_about_an_order():
    common = {
        "event_id": "e",
        "trading_account_id": "a",
        "occurred_at": "2026-01-05T12:00:00Z",
        "sequence": 7,
        "epoch": "x",
    }
    refusal = {**common, "type": "EVENT_TYPE_REFUSAL", "refusal": {
        "id": "r", "type": "CREATE", "symbol": "AAPL", "order_side": "BUY", "actor": {"type": "api_key", "id": "k"},
        "spec": {"Market": {"quantity": "500"}}, "request_id": "q",
        "reasons": [{"code": "QUANTITY_ABOVE_LIMIT", "control": "limits", "version": 1, "message": "500 is above 100"}],
    }}  # fmt: skip
    position = {**common, "type": "EVENT_TYPE_BROKER_POSITION", "broker_position": {"symbol": "AAPL", "quantity": "1"}}

    line = event_line(tip_client.events.event_of(refusal))

    assert line.endswith("REFUSED           BUY 500 AAPL market   QUANTITY_ABOVE_LIMIT: 500 is above 100")
    assert event_line(tip_client.events.event_of(position)) is None
