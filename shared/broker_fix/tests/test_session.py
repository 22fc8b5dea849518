"""The rules of a session, on lines that fail wherever they can."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tip_broker_fix.gateway import tags
from tip_broker_fix.gateway.codec import Garbled, Message, encode, take_messages
from tip_broker_fix.gateway.session import FRESH_SECONDS, Names, Outgoing, Sent, Session, on_the_line

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
OURS, THEIRS = Names("TIP", "BROKER", heartbeat_seconds=30), Names("BROKER", "TIP", heartbeat_seconds=30)


class Side:
    """One end: what it has kept survives it, and nothing else does."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.kept: dict[int, Sent] = {}
        self.numbers = (1, 1)
        self.received: list[str] = []
        self.sent: list[str] = []
        self.begin()

    def begin(self) -> None:
        """After a restart, or on a new line."""
        self.session = Session(self.names, *self.numbers, history=self._history)

    def _history(self, first: int, last: int) -> list[Sent]:
        return [self.kept[number] for number in sorted(self.kept) if first <= number <= last]

    def send(self, text: str) -> None:
        self.session.send("D", [(tags.TEXT, text)], NOW)

    def keep(self) -> list[bytes]:
        """The transaction: what is written to the line afterwards."""
        outgoing, self.session.outgoing = self.session.outgoing, []
        new = [out for out in outgoing if out.type == "D" and out.original is None]
        self.kept |= {out.number: Sent(*out[:4]) for out in new}
        self.sent += [dict(out.body)[tags.TEXT] for out in new]
        self.received += [message.get(tags.TEXT) or "" for message in self.session.delivered]
        self.session.delivered = []
        self.numbers = (self.session.next_out, self.session.next_in)
        return [on_the_line(self.names, out) for out in outgoing]

    def take(self, raw: bytes) -> None:
        """An acceptor answers a logon with its own, before anything else."""
        [message] = take_messages(bytearray(raw))
        if message.type == tags.LOGON and self.names == THEIRS:
            self.session.log_on(NOW)
        self.session.receive(message, NOW)


def converse(ours: Side, theirs: Side, wire: dict[str, list[bytes]], steps: int = 10_000) -> int:
    """Carry messages until nobody has any, or for so many steps; how many were left."""
    for _ in range(steps):
        wire["out"] += ours.keep()
        wire["in"] += theirs.keep()
        if wire["out"]:
            theirs.take(wire["out"].pop(0))
        elif wire["in"]:
            ours.take(wire["in"].pop(0))
        else:
            return 0
    return len(wire["out"]) + len(wire["in"])


def connect(ours: Side, theirs: Side) -> dict[str, list[bytes]]:
    ours.begin()
    theirs.begin()
    ours.session.log_on(NOW)
    return {"out": [], "in": []}


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=6))
def test_whatever_is_cut_nothing_is_lost_or_doubled(lines: list[tuple[int, int, int, bool]]) -> None:
    """Each line carries some messages each way and is cut after some steps, with what is on its way."""
    ours, theirs = Side(OURS), Side(THEIRS)
    for number, (steps, mine, yours, early) in enumerate(lines):
        wire = connect(ours, theirs)
        if early:
            converse(ours, theirs, wire, steps)
        else:
            converse(ours, theirs, wire)
        for side, count in ((ours, mine), (theirs, yours)):
            for place in range(count if side.session.is_active else 0):
                side.send(f"{side.names.sender} {number} {place}")
        converse(ours, theirs, wire, steps)

    assert converse(ours, theirs, connect(ours, theirs)) == 0
    assert (theirs.received, ours.received) == (ours.sent, theirs.sent)


def active() -> Side:
    side = Side(OURS)
    side.session.log_on(NOW)
    side.take(from_broker(tags.LOGON, 1))
    side.keep()
    return side


def from_broker(kind: str, number: int, *body: tuple[int, str], again: bool = False) -> bytes:
    return on_the_line(THEIRS, Outgoing(number, kind, body, NOW, NOW if again else None))


def types(frames: list[bytes]) -> list[str]:
    return [message.type for frame in frames for message in take_messages(bytearray(frame))]


def test_an_old_order_is_skipped_and_not_sent_again() -> None:
    side = active()
    side.send("old")
    side.keep()
    side.send("fresh")
    side.keep()
    late = NOW + timedelta(seconds=FRESH_SECONDS + 1)
    side.kept[3] = side.kept[3]._replace(sent_at=late)

    [request] = take_messages(bytearray(from_broker(tags.RESEND_REQUEST, 2, (7, "2"), (16, "0"))))
    side.session.receive(request, late)

    [skipped, repeated] = [message for frame in side.keep() for message in take_messages(bytearray(frame))]
    assert (skipped.type, skipped.number(34), skipped.number(36)) == (tags.SEQUENCE_RESET, 2, 3)
    assert (repeated.number(34), repeated.get(58), repeated.is_set(43)) == (3, "fresh", True)


def test_silence_is_tested_and_then_ends_the_line() -> None:
    side = active()

    side.session.tick(NOW + timedelta(seconds=31))
    side.session.tick(NOW + timedelta(seconds=37))
    assert types(side.keep()) == [tags.HEARTBEAT, tags.TEST_REQUEST]
    side.session.tick(NOW + timedelta(seconds=73))
    assert side.session.end_reason == "nothing received"


def test_a_test_request_is_answered_with_its_own_words() -> None:
    side = active()

    side.take(from_broker(tags.TEST_REQUEST, 2, (112, "are you there")))

    [frame] = side.keep()
    [beat] = take_messages(bytearray(frame))
    assert (beat.type, beat.get(112)) == (tags.HEARTBEAT, "are you there")


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (from_broker("8", 1), "MsgSeqNum too low"),
        (on_the_line(Names("STRANGER", "TIP"), Outgoing(2, "8", (), NOW)), "CompID problem"),
        (from_broker(tags.LOGON, 2, (141, "Y")), "reset of sequence numbers refused"),
        (from_broker(tags.LOGOUT, 2, (58, "good night")), "logged out: good night"),
    ],
    ids=["number too low", "stranger", "reset", "logout"],
)
def test_a_broken_session_is_ended(frame: bytes, reason: str) -> None:
    side = active()

    side.take(frame)

    assert side.session.end_reason == reason and side.received == []


def test_a_repeated_number_is_taken_once() -> None:
    side = active()
    side.take(from_broker("8", 2, (58, "filled")))
    side.take(from_broker("8", 2, (58, "filled"), again=True))
    side.keep()

    assert side.received == ["filled"]


@given(st.binary(max_size=80))
def test_no_bytes_do_harm(data: bytes) -> None:
    buffer = bytearray(data)
    with suppress(Garbled):
        assert take_messages(buffer) == [] and bytes(buffer) == data


@given(st.lists(st.text("abc =1\u20ac", max_size=5), max_size=4), st.integers(1, 40))
def test_messages_come_through_in_any_pieces(texts: list[str], size: int) -> None:
    line = b"".join(encode([(35, "8"), (58, text)]) for text in texts)
    buffer, found = bytearray(), []
    for start in range(0, len(line), size):
        buffer += line[start : start + size]
        found += take_messages(buffer)

    assert [message.get(58) for message in found] == texts


@pytest.mark.parametrize(
    "frame",
    [
        b"8=FIX.4.2\x019=5\x0135=0\x0110=161\x01xxxxxxxxxx",
        encode([(35, "8")])[:-4] + b"000\x01",
        b"8=FIX.4.4\x019=9999999\x01" + b"x" * 20,
        encode([(58, "no type")]),
    ],
    ids=["other version", "checksum", "too long", "no type"],
)
def test_what_is_damaged_ends_the_line(frame: bytes) -> None:
    with pytest.raises(Garbled):
        take_messages(bytearray(frame))


def test_a_number_that_is_none_ends_the_line() -> None:
    with pytest.raises(Garbled):
        Message("8", {34: "-1"}).number(34)
