"""The bytes of the raw cases, and what they may be answered: from RFC 9112 and the contract."""

from collections.abc import Iterator
from dataclasses import dataclass

BAD = frozenset({400})
REFUSED = frozenset({400, 405, 408, 411, 413, 414, 417, 431, 501, 505})
HOST = b"Host: 127.0.0.1\r\n"
SECOND = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
"""Hidden in a body or behind an odd ending: whoever answers it was fooled."""


@dataclass(frozen=True)
class Case:
    name: str
    data: bytes
    allowed: frozenset[int] = BAD
    most: int = 1
    """How many answers there may be."""
    may_close: bool = False
    """Whether the connection may be ended without a word: only where what came is no HTTP at all."""


def _post(*headers: bytes, body: bytes = b"") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"POST /v1/accounts HTTP/1.1\r\n" + HOST + lines + b"\r\n" + body


def _get(*headers: bytes, target: bytes = b"/health/live", version: bytes = b"HTTP/1.1", host: bytes = HOST) -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"GET " + target + b" " + version + b"\r\n" + host + lines + b"\r\n"


CHUNKED = b"Transfer-Encoding: chunked"
CASES = (
    Case("TE and CL", _post(b"Content-Length: 5", CHUNKED, body=b"0\r\n\r\n" + SECOND)),
    Case("CL and TE", _post(CHUNKED, b"Content-Length: 4", body=b"0\r\n\r\n" + SECOND)),
    Case("two CL", _post(b"Content-Length: 0", b"Content-Length: 47", body=SECOND)),
    Case("CL with a list", _post(b"Content-Length: 0, 47", body=SECOND)),
    Case("CL with a plus", _post(b"Content-Length: +5", body=b"hello")),
    Case("CL negative", _post(b"Content-Length: -5", body=b"hello")),
    Case("CL in hex", _post(b"Content-Length: 0x5", body=b"hello")),
    Case("CL with an underscore", _post(b"Content-Length: 1_0", body=b"helloworld")),
    Case("CL empty", _post(b"Content-Length: ", body=SECOND)),
    Case("TE gzip, chunked", _post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), REFUSED),
    Case("TE chunked twice", _post(CHUNKED, CHUNKED, body=b"0\r\n\r\n" + SECOND), REFUSED),
    Case("TE chunked, identity", _post(b"Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n" + SECOND), REFUSED),
    Case("TE unknown", _post(b"Transfer-Encoding: xchunked", body=SECOND), REFUSED),
    Case("TE with a tab", _post(b"Transfer-Encoding:\tchunked\x0b", body=b"0\r\n\r\n" + SECOND), REFUSED),
    Case("TE with a space before the colon", _post(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n" + SECOND)),
    Case("TE in HTTP/1.0", b"POST /v1/accounts HTTP/1.0\r\n" + HOST + CHUNKED + b"\r\n\r\n0\r\n\r\n" + SECOND, REFUSED),
    Case("chunk size overflow", _post(CHUNKED, body=b"f" * 20 + b"\r\nhello\r\n0\r\n\r\n"), REFUSED),
    Case("chunk size negative", _post(CHUNKED, body=b"-1\r\nhello\r\n0\r\n\r\n")),
    Case("chunk size with 0x", _post(CHUNKED, body=b"0x5\r\nhello\r\n0\r\n\r\n")),
    Case("chunk without CRLF", _post(CHUNKED, body=b"5\r\nhello0\r\n\r\n")),
    Case("chunk size with bare LF", _post(CHUNKED, body=b"5\nhello\n0\n\n")),
    Case("obs-fold", _get(b"X-Folded: a\r\n b")),
    Case("bare LF", b"GET /health/live HTTP/1.1\nHost: 127.0.0.1\n\n"),
    Case("bare CR in a header", _get(b"X-Odd: a\rb")),
    Case("NUL in a header", _get(b"X-Odd: a\x00b")),
    Case("space before a colon", _get(b"X-Odd : a")),
    Case("header without colon", _get(b"nonsense")),
    Case("header without name", _get(b": value")),
    Case("header name with a slash", _get(b"X/Odd: a")),
    Case("space before the first header", b"GET /health/live HTTP/1.1\r\n " + HOST + b"\r\n"),
    Case("no Host", _get(host=b"")),
    Case("two Hosts", _get(b"Host: other.test")),
    Case("Host with a space", _get(host=b"Host: a b\r\n")),
    Case("HTTP/9.9", _get(version=b"HTTP/9.9"), REFUSED),
    Case("http in lower case", _get(version=b"http/1.1"), REFUSED),
    Case("no version", b"GET /health/live\r\n\r\n", REFUSED, may_close=True),
    Case("two spaces", b"GET  /health/live HTTP/1.1\r\n" + HOST + b"\r\n", REFUSED | {200}),
    Case("no target", b"GET HTTP/1.1\r\n" + HOST + b"\r\n", REFUSED),
    Case("target without slash", _get(target=b"health"), REFUSED | {404}),
    Case("target with a space", _get(target=b"/a b"), REFUSED),
    Case("target with NUL", _get(target=b"/a\x00b"), REFUSED),
    Case("target with raw bytes", _get(target=b"/\xff\xfe"), REFUSED | {404}),
    Case("target of 100 KB", _get(target=b"/" + b"a" * 100_000), REFUSED),
    Case("method of 1 KB", b"A" * 1_000 + b" / HTTP/1.1\r\n" + HOST + b"\r\n", REFUSED),
    Case("method with odd letters", b"G\xc3\x89T / HTTP/1.1\r\n" + HOST + b"\r\n", REFUSED),
    Case("CONNECT", b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + HOST + b"\r\n", REFUSED | {404}),
    Case("asterisk", b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", REFUSED | {200, 204, 404}),
    Case("header of 100 KB", _get(b"X-Long: " + b"a" * 100_000), REFUSED),
    Case("1 000 headers", _get(*(b"X-%d: a" % number for number in range(1_000))), REFUSED),
    Case("expect something else", _post(b"Expect: 200-ok", b"Content-Length: 2", body=b"{}"), REFUSED | {401, 404}),
    Case("upgrade", _get(b"Connection: Upgrade", b"Upgrade: websocket"), REFUSED | {200, 426}),
    Case("upgrade to h2c", _get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"),
         REFUSED | {200}),
    Case("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 9, REFUSED, may_close=True),
    Case("TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100 + b"\r\n\r\n", may_close=True),
    Case("binary", bytes(range(256)) + b"\r\n\r\n", REFUSED, may_close=True),
)  # fmt: skip

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GRPC_CASES = (
    ("HTTP/1.1", SECOND),
    ("TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100),
    ("binary", bytes(range(256))),
    ("a frame before SETTINGS", PREFACE + b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + b"\x00" * 8),
    ("a frame of 16 MB", PREFACE + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01"),
    ("DATA on stream 0", PREFACE + b"\x00" * 3 + b"\x04\x00" + b"\x00" * 4 + b"\x00\x00\x01\x00\x00\x00\x00\x00\x00a"),
)


@dataclass(frozen=True)
class Slow:
    name: str
    rule: str
    begin: bytes
    drop: bytes


def slow_cases(account_id: str) -> Iterator[Slow]:
    path = f"/v1/accounts/{account_id}/intents".encode()
    json = b"Content-Type: application/json\r\n"
    yield Slow("slow request line", "a request line", b"G", b"E")
    yield Slow("slow headers", "a request's headers", b"GET /health/live HTTP/1.1\r\n" + HOST, b"X-A: b\r\n")
    yield Slow("slow header", "a request's headers", b"GET /health/live HTTP/1.1\r\n" + HOST + b"X-A: ", b"a")
    yield Slow("slow body", "a request's body",
               b"POST " + path + b" HTTP/1.1\r\n" + HOST + json + b"Content-Length: 60000\r\n\r\n", b" ")  # fmt: skip
    yield Slow("slow chunks", "a request's body",
               b"POST " + path + b" HTTP/1.1\r\n" + HOST + json + CHUNKED + b"\r\n\r\n", b"1\r\n \r\n")  # fmt: skip
