"""Request ids and W3C trace context, carried from the request through outbox and queue to whatever it causes."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Self

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", re.ASCII)


@dataclass(frozen=True)
class Trace:
    """One step of a trace: `traceparent` is passed on to the next step."""

    request_id: str
    traceparent: str

    @classmethod
    def begin(cls, request_id: str | None = None, traceparent: str | None = None) -> Self:
        """Continue the caller's trace when it is well-formed, else start one."""
        sane = request_id if request_id and _REQUEST_ID.fullmatch(request_id) else secrets.token_hex(16)
        return cls(sane, _child(traceparent))


def _child(traceparent: str | None) -> str:
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match and match[1] != "0" * 32 and match[2] != "0" * 16:
        return f"00-{match[1]}-{secrets.token_hex(8)}-{match[3]}"
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"


current: ContextVar[Trace | None] = ContextVar("trace", default=None)


@contextmanager
def resumed(trace: Trace) -> Iterator[None]:
    """Log lines and outbox rows written inside carry the trace."""
    token = current.set(trace)
    try:
        yield
    finally:
        current.reset(token)


def trace_id(traceparent: str | None) -> str | None:
    """The id that all steps of a trace share."""
    return traceparent.split("-")[1] if traceparent else None


def traceparent() -> str | None:
    """The traceparent of what is being done now, to be stored with what it causes."""
    trace = current.get()
    return trace.traceparent if trace else None
