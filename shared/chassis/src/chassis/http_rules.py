"""The limits of a request that hold before any app sees it, the same on every HTTP server of the platform."""

import re
from collections.abc import Iterable
from http import HTTPStatus

from chassis import strict_json, tracing
from chassis.problems import Answer, Problem

HEADERS_S = 10.0
"""From the first byte of a request until its headers are complete."""
BODY_S = 30.0
"""From the end of the headers until the body is complete."""
IDLE_S = 30
"""How long a connection may stay open between two requests, or before the first."""

_HOST = re.compile(rb"[A-Za-z0-9._~%:\[\]-]*")

REPEATED_HEADERS = "tip.repeated_headers"
"""Where a WSGI environment names the headers that came on more than one line: it has one value for each."""

ARRIVED = "tip.arrived"
"""Where the scope or environment of a request says when it had been read, by the monotonic clock."""


def check(version: tuple[int, int], headers: Iterable[tuple[bytes, bytes]], content_length: int | None) -> None:
    """Raise the problem of a request that two servers could read in two ways, or whose body is too large.

    Names of headers are in lower case.
    """
    if version not in ((1, 0), (1, 1)):
        raise Problem(400, detail="The versions of HTTP spoken here are 1.0 and 1.1.")
    has_host = False
    for name, value in headers:
        if name == b"host":
            has_host = True
            if not _HOST.fullmatch(value):
                raise Problem(400, detail="The Host header is not the name of a host.")
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise Problem(501, "unsupported_transfer_coding", "The only transfer coding taken is chunked.")
    if version >= (1, 1) and not has_host:
        raise Problem(400, detail="A request of HTTP/1.1 needs a Host header.")
    if content_length is not None and content_length > strict_json.MAX_BYTES:
        raise body_too_large()


def body_too_large() -> Problem:
    return Problem(413, detail=f"A body has at most {strict_json.MAX_BYTES} bytes.")


def headers_too_late() -> Problem:
    return Problem(408, detail=f"The headers were not complete after {HEADERS_S:.0f} seconds.")


def body_too_late() -> Problem:
    return Problem(408, detail=f"The body was not complete after {BODY_S:.0f} seconds.")


def common_headers(trace: tracing.Trace | None) -> list[tuple[str, str]]:
    """What every answer carries."""
    ours = [("X-Content-Type-Options", "nosniff")]
    return [("X-Request-Id", trace.request_id), ("traceparent", trace.traceparent), *ours] if trace else ours


def closing_answer(answer: Answer, trace: tracing.Trace) -> bytes:
    """The answer as HTTP/1.1 has it, from a server that closes the connection after it."""
    headers = [("Content-Length", str(len(answer.body))), ("Connection", "close"), *common_headers(trace)]
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in [*answer.headers, *headers]]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body
