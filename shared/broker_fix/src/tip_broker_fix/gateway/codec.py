"""FIX 4.4 on the line: tag=value pairs, each ended by SOH, framed by BodyLength and CheckSum."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SOH = "\x01"
MOST_BYTES = 2**16  # of one message
LONGEST_HEAD = 32
TRAILER_BYTES = len(b"10=000\x01")
_HEAD = re.compile(rb"8=FIX\.4\.4\x019=(\d{1,7})\x01")

Field = tuple[int, str]


class Garbled(Exception):
    """Not FIX 4.4, or damaged on the way. The line is cut: what was lost is requested for again on the next one."""


@dataclass(frozen=True, slots=True)
class Message:
    type: str
    values: Mapping[int, str]
    """Of a tag that repeats, in a group, the first."""

    def get(self, tag: int) -> str | None:
        return self.values.get(tag)

    def number(self, tag: int) -> int:
        text = self.values.get(tag, "")
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise Garbled(f"tag {tag} is no number")
        return int(text)

    def is_set(self, tag: int) -> bool:
        return self.values.get(tag) == "Y"


def encode(fields: Iterable[Field]) -> bytes:
    """From MsgType to the last field of the body."""
    body = "".join([f"{tag}={value}{SOH}" for tag, value in fields]).encode()
    framed = b"8=FIX.4.4\x019=%d\x01" % len(body) + body
    return framed + b"10=%03d\x01" % (sum(framed) % 256)


def take_messages(buffer: bytearray) -> list[Message]:
    """Every complete message at the beginning of the buffer, which keeps the rest."""
    found = []
    while size := _frame_size(buffer):
        found.append(_decode(bytes(buffer[:size])))
        del buffer[:size]
    return found


def _frame_size(buffer: bytearray) -> int:
    """Of the first message; 0 if more of it has to come."""
    head = _HEAD.match(buffer)
    if head is None:
        if len(buffer) >= LONGEST_HEAD:
            raise Garbled("not FIX 4.4")
        return 0
    if int(head[1]) > MOST_BYTES:
        raise Garbled("too long")
    size = head.end() + int(head[1]) + TRAILER_BYTES
    return size if len(buffer) >= size else 0


def _decode(frame: bytes) -> Message:
    framed, trailer = frame[:-TRAILER_BYTES], frame[-TRAILER_BYTES:]
    if trailer != b"10=%03d\x01" % (sum(framed) % 256):
        raise Garbled("wrong checksum")
    values: dict[int, str] = {}
    for pair in framed.decode(errors="replace").replace("\x00", "\ufffd").split(SOH):
        tag, equals, value = pair.partition("=")
        if equals and tag.isascii() and tag.isdigit() and len(tag) < 7:
            values.setdefault(int(tag), value)
    if 35 not in values:
        raise Garbled("no type")
    return Message(values[35], values)
