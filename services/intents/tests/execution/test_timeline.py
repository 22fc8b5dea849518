"""GET …/intents/{intent_id}/timeline: every command, call and report of an intent; and the same in the log."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from intents import schemas_timeline
from intents.execution.model.calls import BrokerCall, result_of
from intents.execution.store.calls import call_rows
from intents.execution.store.rows import as_json
from tip_brokers import Refused
from tip_testing.commands import cancel, create, limit, replace
from tip_testing.processes import Running
from tip_testing.waiting import eventually

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACED = {"x_request_id": "story-1", "traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}


@pytest.fixture(scope="module", autouse=True)
def executor(start: Callable[..., Running]) -> Running:
    return start("executor", LOG_FORMAT="json")


@pytest.fixture(scope="module", autouse=True)
def reconciler(start: Callable[..., Running]) -> Running:
    return start("reconciler", LOG_FORMAT="json")


def timeline(desk: Any, intent: Any, query: str = "") -> list[dict[str, Any]]:
    answer = desk.get(f"/{intent['intent_id']}/timeline{query}")
    assert answer.status_code == 200, answer.get_data(as_text=True)
    found: list[dict[str, Any]] = answer.json["data"]
    return found


def outline(entries: list[dict[str, Any]]) -> list[str]:
    return [_outline(entry) for entry in entries]


def _outline(entry: dict[str, Any]) -> str:
    match entry["kind"]:
        case "COMMAND":
            return str(entry["command"]["type"])
        case "CALL":
            return f"{entry['call']['verb']} {entry['call']['result']}"
    return str(entry["report"]["to_status"] or entry["report"]["type"])


def calls(desk: Any, intent: Any) -> list[dict[str, Any]]:
    return [entry["call"] for entry in timeline(desk, intent) if entry["kind"] == "CALL"]


def with_calls(desk: Any, intent: Any, *recorded: str) -> list[dict[str, Any]]:
    """The story once these calls are in it: the broker's stream may end an order before the call is recorded."""

    def story() -> list[dict[str, Any]] | None:
        entries = timeline(desk, intent)
        return entries if {*recorded} <= {*outline(entries)} else None

    return eventually(story)


def test_the_story_of_a_filled_order_has_its_command_its_send_and_its_fill(desk, reaches):
    intent = desk.submit(create("AAPL"), **TRACED).json
    reaches(intent, "FILLED")

    command, send, *reports = with_calls(desk, intent, "create ANSWERED")

    assert (command["kind"], command["action_id"], command["sequence"]) == ("COMMAND", intent["id"], 1)
    assert (command["command"]["request_id"], command["trace_id"]) == ("story-1", TRACE_ID)
    assert command["command"]["actor"] == intent["actor"]
    assert command["command"]["controls"] == intent["controls"]
    assert (command["command"]["from_status"], command["command"]["to_status"]) == (None, "PENDING")
    assert (send["kind"], send["action_id"]) == ("CALL", intent["id"])
    assert (send["call"]["verb"], send["call"]["result"], send["call"]["times"]) == ("create", "ANSWERED", 1)
    assert 0 < send["call"]["duration_ms"] < 60_000
    state = desk.get(f"/{intent['intent_id']}").json["state"]
    fill = next(report["report"] for report in reports if report["report"]["type"] == "BROKER_TRADE")
    assert (fill["broker_order_id"], fill["payload"]["quantity"]) == (state["broker_order_id"], "10")
    assert "execution_id" in fill  # None if the fill was in the answer, which names no execution
    assert "FILLED" in outline(reports)


def test_entries_come_in_the_order_in_which_they_happened(desk, reaches):
    intent = desk.created(limit("SIM.OPEN", quantity="10"))
    reaches(intent, "ACCEPTED")
    desk.created(replace(intent["intent_id"], Limit={"quantity": "20", "limit_price": "98"}))
    eventually(lambda: reaches(intent, "ACCEPTED")["leaves_quantity"] == "20")
    desk.created(cancel(intent["intent_id"]))
    reaches(intent, "CANCELED")

    entries = with_calls(desk, intent, "create ANSWERED", "replace ANSWERED", "cancel ANSWERED")

    moments = [entry["at"] for entry in entries]
    assert moments == sorted(moments)
    words = outline(entries)
    story = ["CREATE", "create ANSWERED", "ACCEPTED", "REPLACE", "replace ANSWERED", "CANCEL", "cancel ANSWERED"]
    places = [words.index(word) for word in (*story, "CANCELED")]
    assert places == sorted(places)


def test_pages_are_the_whole_story_in_pieces(desk, reaches):
    intent = desk.created(create("AAPL"))
    reaches(intent, "FILLED")
    with_calls(desk, intent, "create ANSWERED")

    eventually(lambda: in_pieces(desk, intent) == timeline(desk, intent))  # reports may still come in between

    assert len(in_pieces(desk, intent)) >= 4


def in_pieces(desk: Any, intent: Any) -> list[dict[str, Any]]:
    pieces, cursor = [], ""
    while True:
        page = desk.get(f"/{intent['intent_id']}/timeline?limit=1{cursor}").json
        pieces += page["data"]
        if page["next_cursor"] is None:
            return pieces
        cursor = f"&next_cursor={page['next_cursor']}"


def test_the_story_of_fills_that_the_stream_brings_is_as_the_document_says(desk, reaches):
    def with_position() -> list[dict[str, Any]] | None:
        """Once the stream is open: fills that were read come without it."""
        intent = desk.created(create("SIM.TRICKLE50", quantity="3"))
        reaches(intent, "FILLED")
        story = with_calls(desk, intent, "create ANSWERED")
        return story if "BROKER_POSITION" in outline(story) else None

    assert schemas_timeline.TimelineRecord(many=True).validate(eventually(with_position)) == {}


def test_a_send_that_was_never_answered_is_shown_as_such(desk):
    """Also if the reconciler sees the order first: then nobody has to query for it."""
    intent = desk.created(create("SIM.TIMEOUT_AFTER_ACCEPT"))

    send = eventually(lambda: calls(desk, intent))[0]

    assert (send["verb"], send["result"]) == ("create", "UNKNOWN")
    assert send["duration_ms"] > 1_000
    assert send["reason"]


def test_a_refusal_is_shown_with_the_brokers_words(desk, reaches):
    intent = desk.created(create("SIM.REJECT"))
    reaches(intent, "REJECTED")

    [call] = calls(desk, intent)

    assert (call["verb"], call["result"]) == ("create", "REFUSED")
    assert call["reason"]


def test_what_is_tried_again_and_again_alike_is_one_entry_that_counts(desk, reaches):
    intent = desk.created(create("SIM.RATE_LIMIT"))
    reaches(intent, "FILLED")
    with_calls(desk, intent, "create ANSWERED")

    limited, sent = calls(desk, intent)

    assert (limited["result"], sent["result"]) == ("RATE_LIMITED", "ANSWERED")
    assert limited["times"] == 2
    assert limited["last_at"] <= timeline(desk, intent)[-1]["at"]


def test_the_log_of_each_process_tells_the_same_story(desk, executor, reconciler, reaches):
    intent = desk.submit(create("AAPL"), **TRACED).json
    reaches(intent, "FILLED")

    def events() -> list[dict[str, Any]]:
        written = f"{executor.output()}\n{reconciler.output()}".splitlines()  # either may see the fill first
        lines = (json.loads(line) for line in written if line.startswith("{"))
        return [line for line in lines if line.get("intent_id") == intent["intent_id"]]

    eventually(lambda: {"send_answered", "order_reported"} <= {line["event"] for line in events()})
    by_name = {line["event"]: line for line in events()}
    for name in ("send_started", "send_answered"):
        assert (by_name[name]["request_id"], by_name[name]["trace_id"]) == ("story-1", TRACE_ID)
        assert by_name[name]["action_id"] == intent["id"]
    assert by_name["send_answered"]["result"] == "ANSWERED"


@pytest.mark.parametrize("words", ["\0", "half a pair \ud800", "x" * 100_000], ids=["NUL", "surrogate", "long"])
def test_no_words_of_a_broker_keep_a_call_from_being_recorded(desk, words):
    result, why = result_of(Refused("CODE", words))
    call = BrokerCall(uuid4(), "create", datetime.now(UTC), 1.0, result, why)

    assert json.loads(as_json(call_rows([call], 0)))[0]["reason"] == why
    assert why and len(why) <= 200
    desk.execute("SELECT CAST(:rows AS jsonb)", rows=as_json(call_rows([call], 0)))


@pytest.mark.parametrize("query", ["?limit=0", "?limit=x", "?next_cursor=x", "?unknown=1"])
def test_a_query_that_is_not_understood_is_400(desk, query):
    intent = desk.created(limit("SIM.OPEN"))
    assert desk.get(f"/{intent['intent_id']}/timeline{query}").status_code == 400


def test_an_intent_that_is_not_there_has_no_story(desk):
    assert desk.get(f"/{uuid4()}/timeline").status_code == 404
