"""The rules of a FIX session: numbers, gaps, heartbeats. No socket, no clock, no database.

Whoever drives it gives it what came in and what time it is, keeps `next_in`, `next_out` and `outgoing` in one
transaction, and only then writes `outgoing` to the line. So what the other side has seen is never forgotten here, and
what was not kept is requested again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from tip_broker_fix.gateway import tags
from tip_broker_fix.gateway.codec import Field, Message, encode

LOGON_SECONDS = 10.0
SILENT_BEATS, LOST_BEATS = 1.2, 2.4  # without a word: then it is tested, then the line is given up
FRESH_SECONDS = 5.0
"""A message that was sent longer ago is not sent again: nobody wants an order that late."""


class Sent(NamedTuple):
    """An application message as it was sent: its own fields, without those of the session."""

    number: int
    type: str
    body: tuple[Field, ...]
    sent_at: datetime


class Outgoing(NamedTuple):
    number: int
    type: str
    body: tuple[Field, ...]
    sent_at: datetime
    original: datetime | None = None
    """When it was first sent, if this is a repetition (PossDup)."""


class Phase(StrEnum):
    CONNECTING = "connecting"
    ACTIVE = "active"
    ENDED = "ended"


class Names(NamedTuple):
    """Who speaks to whom, and how this side logs on."""

    sender: str
    target: str
    username: str = ""
    password: str = ""
    heartbeat_seconds: int = 30


History = Callable[[int, int], Iterable[Sent]]
"""The application messages kept between two numbers, oldest first."""


@dataclass
class Session:
    names: Names
    next_out: int
    next_in: int
    history: History = lambda _first, _last: ()
    phase: Phase = Phase.CONNECTING
    outgoing: list[Outgoing] = field(default_factory=list)
    delivered: list[Message] = field(default_factory=list)
    """Application messages, and rejections of our own, each exactly once and in order."""
    end_reason: str = ""
    _sent_at: datetime | None = None
    _received_at: datetime | None = None
    _tested: bool = False
    _gap_since: datetime | None = None

    @property
    def is_active(self) -> bool:
        return self.phase is Phase.ACTIVE

    def log_on(self, now: datetime) -> None:
        """First on every new line."""
        credentials = [(tags.USERNAME, self.names.username), (tags.PASSWORD, self.names.password)]
        beat = (tags.HEART_BT_INT, str(self.names.heartbeat_seconds))
        self._received_at = now
        self._emit(tags.LOGON, [(tags.ENCRYPT_METHOD, "0"), beat, *(pair for pair in credentials if pair[1])], now)

    def send(self, kind: str, body: Sequence[Field], now: datetime) -> int:
        """Number an application message. The session must be active."""
        return self._emit(kind, body, now)

    def log_out(self, text: str, now: datetime) -> None:
        if self.is_active:
            self._emit(tags.LOGOUT, [(tags.TEXT, text)], now)
        self._end(text)

    def receive(self, message: Message, now: datetime) -> None:
        if self.phase is Phase.ENDED:
            return
        self._received_at, self._tested = now, False
        if problem := self._problem(message):
            self.log_out(problem, now)
        elif _is_reset(message):
            self._reset(message)
        else:
            self.phase = Phase.ACTIVE if message.type == tags.LOGON else self.phase
            self._in_order(message, now)

    def _problem(self, message: Message) -> str | None:
        if (message.get(tags.SENDER), message.get(tags.TARGET)) != (self.names.target, self.names.sender):
            return "CompID problem"
        if self.phase is Phase.CONNECTING and message.type not in (tags.LOGON, tags.LOGOUT):
            return "first message is no logon"
        if message.type == tags.LOGON and message.is_set(tags.RESET_SEQ_NUM):
            return "reset of sequence numbers refused"  # what was not delivered would be lost
        is_too_low = message.number(tags.MSG_SEQ_NUM) < self.next_in and not message.is_set(tags.POSS_DUP)
        return "MsgSeqNum too low" if is_too_low and not _is_reset(message) else None

    def _in_order(self, message: Message, now: datetime) -> None:
        ahead = message.number(tags.MSG_SEQ_NUM) - self.next_in
        if message.type == tags.RESEND_REQUEST and ahead >= 0:
            self._repeat(message, now)  # also ahead of a gap, or both sides would wait for each other
        if ahead == 0:
            self.next_in += 1
            self._gap_since = None
            self._take(message, now)
        elif ahead > 0 and message.type != tags.LOGOUT:
            self._request_missing(now)
        if message.type == tags.LOGOUT and ahead >= 0:
            self.log_out(f"logged out: {message.get(tags.TEXT) or ''}"[:200], now)

    def _take(self, message: Message, now: datetime) -> None:
        """The next message in order."""
        if message.type == tags.TEST_REQUEST:
            self._emit(tags.HEARTBEAT, [(tags.TEST_REQ_ID, message.get(tags.TEST_REQ_ID) or "")], now)
        elif message.type == tags.SEQUENCE_RESET:
            self._reset(message)
        elif message.type == tags.REJECT or message.type not in tags.ADMIN:
            self.delivered.append(message)

    def _reset(self, message: Message) -> None:
        """Numbers only go up: what is skipped so is nothing that has to be known."""
        self.next_in = max(self.next_in, message.number(tags.NEW_SEQ_NO))
        self._gap_since = None

    def _request_missing(self, now: datetime) -> None:
        """Once, from the first missing one on. What comes ahead of it comes again."""
        if self._gap_since is None:
            self._gap_since = now
            self._emit(tags.RESEND_REQUEST, [(tags.BEGIN_SEQ_NO, str(self.next_in)), (tags.END_SEQ_NO, "0")], now)

    def _repeat(self, request: Message, now: datetime) -> None:
        """Send again what is fresh, and skip the rest."""
        first, last = request.number(tags.BEGIN_SEQ_NO), request.number(tags.END_SEQ_NO)
        last = self.next_out - 1 if last == 0 or last >= self.next_out else last
        for sent in self._fresh(first, last, now):
            self._skip(first, sent.number, now)
            self.outgoing.append(Outgoing(sent.number, sent.type, sent.body, now, sent.sent_at))
            first = sent.number + 1
        self._skip(first, last + 1, now)

    def _fresh(self, first: int, last: int, now: datetime) -> list[Sent]:
        oldest = now - timedelta(seconds=FRESH_SECONDS)
        kept = {sent.number: sent for sent in self.history(first, last)}
        unkept = [Sent(*out[:4]) for out in self.outgoing if out.original is None and out.type not in tags.ADMIN]
        kept |= {sent.number: sent for sent in unkept if first <= sent.number <= last}
        return [kept[number] for number in sorted(kept) if kept[number].sent_at >= oldest]

    def _skip(self, first: int, following: int, now: datetime) -> None:
        if first < following:
            body = ((tags.GAP_FILL, "Y"), (tags.NEW_SEQ_NO, str(following)))
            self.outgoing.append(Outgoing(first, tags.SEQUENCE_RESET, body, now, now))

    def tick(self, now: datetime) -> None:
        """From time to time: beats, and an end to what does not answer."""
        if self.phase is Phase.ENDED or self._received_at is None:
            return
        if reason := self._lost(now, (now - self._received_at).total_seconds()):
            self._end(reason)
        elif self.is_active:
            self._beat(now, (now - self._received_at).total_seconds())

    def _lost(self, now: datetime, silence: float) -> str | None:
        longest = LOST_BEATS * self.names.heartbeat_seconds
        if self.phase is Phase.CONNECTING:
            return "no answer to logon" if silence > LOGON_SECONDS else None
        if self._gap_since and (now - self._gap_since).total_seconds() > longest:
            return "gap not filled"
        return "nothing received" if silence > longest else None

    def _beat(self, now: datetime, silence: float) -> None:
        beat = self.names.heartbeat_seconds
        if silence > SILENT_BEATS * beat and not self._tested:
            self._tested = True
            self._emit(tags.TEST_REQUEST, [(tags.TEST_REQ_ID, tags.written(now))], now)
        elif self._sent_at and (now - self._sent_at).total_seconds() >= beat:
            self._emit(tags.HEARTBEAT, [], now)

    def _emit(self, kind: str, body: Sequence[Field], now: datetime) -> int:
        number, self.next_out, self._sent_at = self.next_out, self.next_out + 1, now
        self.outgoing.append(Outgoing(number, kind, tuple(body), now))
        return number

    def _end(self, reason: str) -> None:
        self.phase, self.end_reason = Phase.ENDED, self.end_reason or reason


def _is_reset(message: Message) -> bool:
    """SequenceReset as a reset, not as a gap fill: its own number does not count."""
    return message.type == tags.SEQUENCE_RESET and not message.is_set(tags.GAP_FILL)


def on_the_line(names: Names, out: Outgoing) -> bytes:
    repeated: list[Field] = []
    if out.original is not None:
        repeated = [(tags.POSS_DUP, "Y"), (tags.ORIG_SENDING_TIME, tags.written(out.original))]
    resent = [pair for pair in out.body if pair[0] == tags.POSS_RESEND]
    head = [(tags.MSG_TYPE, out.type), (tags.SENDER, names.sender), (tags.TARGET, names.target)]
    head += [(tags.MSG_SEQ_NUM, str(out.number)), (tags.SENDING_TIME, tags.written(out.sent_at)), *repeated, *resent]
    return encode([*head, *(pair for pair in out.body if pair[0] != tags.POSS_RESEND)])
