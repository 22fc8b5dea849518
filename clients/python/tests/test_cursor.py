"""How far a reader of events has come: each event once and in order, over any number of connections."""

import json
import random
from typing import Any

import pytest

import tip_client as tip
from tip_client.cursor import Cursor
from tip_client.discovery import events_url_in
from tip_client.server_sent import ServerSentParser

EPOCH = "e1"


def fill(sequence: int, epoch: str = EPOCH) -> dict[str, Any]:
    trade = {"intent_id": "i", "symbol": "AAPL", "order_side": "BUY", "quantity": "1", "price": "2.5"}
    return {**message(sequence, epoch), "event_id": f"id-{sequence}", "type": "EVENT_TYPE_BROKER_TRADE"} | {
        "broker_trade": trade
    }


def message(sequence: int, epoch: str = EPOCH) -> dict[str, Any]:
    """A heartbeat; numbers of 64 bits are strings in JSON."""
    about = {"event_id": "", "type": "EVENT_TYPE_UNSPECIFIED", "trading_account_id": "a"}
    return {**about, "sequence": str(sequence), "occurred_at": "2026-01-05T12:00:00.123456789Z", "epoch": epoch}


def yielded(cursor: Cursor, *messages: dict[str, Any]) -> list[int]:
    events = [cursor.accept(entry) for entry in messages]
    return [event.position.sequence for event in events if event is not None]


def test_what_comes_twice_is_yielded_once() -> None:
    assert yielded(Cursor(None), fill(4), fill(4), fill(3), fill(5)) == [4, 5]


def test_a_heartbeat_moves_the_position_on_and_yields_nothing() -> None:
    cursor = Cursor(None)

    assert yielded(cursor, message(7)) == []
    assert cursor.position == tip.LogPosition(7, EPOCH)
    assert yielded(cursor, message(5), fill(7), fill(8)) == [8]


def test_a_position_without_an_epoch_takes_the_first_that_comes() -> None:
    cursor = Cursor(tip.LogPosition.of(7))

    assert yielded(cursor, message(7)) == []
    assert cursor.position == tip.LogPosition(7, EPOCH)
    with pytest.raises(tip.PositionOutOfRange):
        cursor.accept(fill(8, "e2"))


@pytest.mark.parametrize("seed", range(20))
def test_any_number_of_connections_yield_every_event_once(seed: int) -> None:
    chance = random.Random(seed)
    cursor, found = Cursor(tip.LogPosition(0, EPOCH)), []
    while len(found) < 100:
        assert cursor.position is not None
        resumed = max(0, cursor.position.sequence - chance.randrange(3))
        upto = min(100, resumed + chance.randrange(1, 9))
        found += yielded(cursor, *(fill(sequence) for sequence in range(resumed + 1, upto + 1)))

    assert found == list(range(1, 101))


def test_an_event_of_a_type_that_was_added_later_is_yielded_as_it_is() -> None:
    added = {**fill(1), "type": "EVENT_TYPE_DIVIDEND", "dividend": {"amount": "3"}}

    event = Cursor(None).accept(added)

    assert isinstance(event, tip.UnknownEvent)
    assert (event.type, event.payload) == ("DIVIDEND", {"amount": "3"})


def test_a_position_is_stored_as_text() -> None:
    position = tip.LogPosition(17, EPOCH)

    assert tip.LogPosition.of(str(position)) == position
    assert tip.LogPosition.of(0) == tip.LogPosition(0)
    for wrong in ("", "x", "-1", "1.5", "²"):
        with pytest.raises(tip.ConfigurationError):
            tip.LogPosition.of(wrong)


def test_a_passing_failure_is_waited_out_and_ever_longer() -> None:
    cursor, failure = Cursor(None), tip.ConnectionFailed("lost", was_sent=True)

    assert [cursor.delay_after(failure, 0.0, 1.0) for _ in range(3)] == [0.1, 0.2, 0.4]
    cursor.accept(message(1))
    assert cursor.delay_after(failure, 0.0, 1.0) == 0.1


def test_a_failure_that_stays_is_raised_at_once() -> None:
    with pytest.raises(tip.Unauthenticated):
        Cursor(None).delay_after(tip.Unauthenticated(401, "unauthenticated"), 0.0, 1.0)


def test_a_caller_may_wish_to_give_up() -> None:
    cursor, failure = Cursor(None, give_up_after=5.0), tip.ConnectionFailed("lost", was_sent=True)

    cursor.delay_after(failure, 100.0, 1.0)
    cursor.delay_after(failure, 104.0, 1.0)
    with pytest.raises(tip.ConnectionFailed):
        cursor.delay_after(failure, 104.9, 1.0)


def server_sent(name: str, data: Any) -> bytes:
    return f"id: 1@e\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_server_sent_events_may_be_cut_anywhere(size: int) -> None:
    stream = server_sent("heartbeat", message(1)) + b": a comment\r\n\r\n" + server_sent("EVENT_TYPE_X", fill(2))
    parser = ServerSentParser()

    found = [entry for start in range(0, len(stream), size) for entry in parser.feed(stream[start : start + size])]

    assert found == [message(1), fill(2)]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("credential_ended", tip.Unauthenticated),
        ("permission_ended", tip.Forbidden),
        ("account_not_found", tip.NotFound),
        ("epoch_ended", tip.PositionOutOfRange),
        ("draining", tip.Unavailable),
        ("added_later", tip.Unavailable),
    ],
)
def test_the_reason_of_an_end_is_an_exception(code: str, kind: type[tip.TipError]) -> None:
    stream = server_sent("EVENT_TYPE_X", fill(2)) + server_sent("end", {"code": code, "detail": "why"})

    before, ended = ServerSentParser().feed(stream)

    assert before == fill(2), "what came with the end is not lost"
    assert isinstance(ended, kind) and ended.is_transient == (kind is tip.Unavailable)


@pytest.mark.parametrize(
    "broken", [b"data: {\n\n", b"data: []\n\n", b"data: " + b"[" * 100_000 + b"\n\n", b"x" * 2**21]
)
def test_what_is_no_event_is_unexpected(broken: bytes) -> None:
    with pytest.raises(tip.UnexpectedAnswer):
        ServerSentParser().feed(broken)


def test_events_are_where_the_document_says_but_never_without_tls_from_tls() -> None:
    plain, secure = tip.Settings(url="http://a"), tip.Settings(url="https://a")

    assert events_url_in([], plain) == "http://a"
    assert events_url_in([{"url": "http://a:9091"}], plain) == "http://a:9091"
    assert events_url_in([{"url": "/"}, 7], secure) == "https://a"
    with pytest.raises(tip.ConfigurationError):
        events_url_in([{"url": "http://a:9091"}], secure)
