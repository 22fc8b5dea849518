"""Whatever is sent, good or hostile: the fast path and Flask answer, log and count it alike."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import structlog.testing
from flask import Flask
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chassis import keys, metrics
from chassis.asgi import Bridge
from chassis.strict_json import MAX_BYTES
from intents.app import create_app
from intents.submit_fast_path import SubmitFastPath
from tip_local.identity_seed import add_account
from tip_testing.commands import cancel, create, limit, replace
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from . import serving
from .conftest import Desk
from .test_controls import disable

UNKNOWN = "8f6a4a3e-0000-4000-8000-000000000000"
INTENT = "11111111-1111-4111-8111-111111111111"  # stands for the intent that was made last on the account
STRANGER = keys.generate("paper")


class Sent(NamedTuple):
    """A request; what it says of the account and of intents is filled in when it is sent."""

    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    credential: str = "paper"
    method: str = "POST"
    path: str = "/v1/accounts/{account_id}/intents"
    query: bytes = b""
    in_chunks: bool = False


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: str
    lines: list[Any]
    """What was logged of it."""
    counts: dict[Any, float]
    """What metrics counted."""


@contextmanager
def counting() -> Iterator[dict[Any, float]]:
    """The series that grew meanwhile, and by how much."""
    before, grown = _series(), dict[Any, float]()
    yield grown
    grown |= {name: value - before.get(name, 0) for name, value in _series().items() if value != before.get(name, 0)}


def _series() -> dict[Any, float]:
    counters = (metrics.REQUESTS, metrics.REQUEST_SECONDS, metrics.RATE_LIMITED, metrics.REFUSED_CREDENTIALS)
    samples = (sample for counter in counters for metric in counter.collect() for sample in metric.samples)
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for sample in samples
        if sample.name.endswith(("_total", "_count"))
    }


class Side:
    """One of the two ways, with an account of its own, and the ids that it has answered so far."""

    def __init__(self, front: Bridge, desk: Desk) -> None:
        self.front, self.desk = front, desk
        self._intent_id = UNKNOWN
        self._names: dict[str, str] = {UNKNOWN: UNKNOWN}

    async def send_all(self, requests: Sequence[Sent]) -> list[Answer]:
        return [await self.send(request) for request in requests]

    async def send(self, sent: Sent) -> Answer:
        with structlog.testing.capture_logs() as lines, counting() as counts:
            status, headers, body = await self.exchange(sent)
        logged = [
            {**line, "ms": None, "path": self._alike(line["path"])} for line in lines if line["event"] == "request"
        ]
        return Answer(status, headers, body, logged, counts)

    async def exchange(self, sent: Sent) -> tuple[int, list[tuple[str, str]], str]:
        messages: list[Mapping[str, Any]] = []
        body = sent.body.replace(INTENT.encode(), self._intent_id.encode())
        parts = [body[:MAX_BYTES], body[MAX_BYTES:]] if len(body) > MAX_BYTES else [body]

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(message: Mapping[str, Any]) -> None:
            messages.append(message)

        await self.front(self._scope(sent, len(body)), receive, send)
        start, end = messages
        self._remember(start["status"], end["body"])
        headers = [(name.decode("latin-1"), self._alike(value.decode("latin-1"))) for name, value in start["headers"]]
        return start["status"], sorted(headers), self._alike(end["body"].decode())

    def _scope(self, sent: Sent, length: int) -> dict[str, Any]:
        path = sent.path.format(account_id=self.desk.account_id, ACCOUNT_ID=str(self.desk.account_id).upper())
        named = {b"x-api-key": self.desk.organization.api_keys.get(sent.credential, sent.credential).encode()}
        if sent.credential == "none":
            named = {}
        framed = (b"transfer-encoding", b"chunked") if sent.in_chunks else (b"content-length", str(length).encode())
        return {
            "type": "http",
            "http_version": "1.1",
            "method": sent.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": sent.query,
            "headers": [*named.items(), framed, *sent.headers],
            "server": ("127.0.0.1", 8080),
            "client": ("127.0.0.1", 1),
        }

    def _remember(self, status: int, body: bytes) -> None:
        if status == 201:
            self._intent_id = json.loads(body)["intent_id"]

    def _alike(self, text: str) -> str:
        """Without what is never the same twice: ids and hashes by the order in which they appear, moments, quota."""
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "a moment", text)
        text = re.sub(r'"default";r=\d+;t=\d+', "what is left", text)
        text = re.sub(r"00-[0-9a-f]{32}-[0-9a-f]{16}-(?=\d\d)", "a trace, ", text)
        text = re.sub(str(self.desk.account_id), "the account", text, flags=re.I)
        ids = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b"
        return re.sub(ids, lambda found: self._names.setdefault(found[0], f"id {len(self._names)}"), text)


@pytest.fixture(scope="module")
def plain_app(platform: Platform) -> Iterator[Flask]:
    app = create_app(platform.web_environment("intents", RATE_LIMIT_PER_MINUTE="1000000"))
    yield app
    app.extensions["deps"].engine.dispose()


@pytest.fixture(scope="module")
def sides(
    plain_app: Flask, platform: Platform, identity: IdentityFixtures, admin: Any
) -> Callable[[], tuple[Side, Side]]:
    """Makes the two ways into one app, with equal accounts."""
    organization: Organization = identity.organization(entitlements=("trading_live",))
    flask_only = Bridge(plain_app.wsgi_app, match_route=plain_app.extensions["match_route"])
    fast, ordinary = (front.start(threads=8) for front in (SubmitFastPath(plain_app), flask_only))

    def make() -> tuple[Side, Side]:
        desks = [Desk(plain_app, platform, organization, add_account(admin, organization.id), admin) for _ in range(2)]
        for desk in desks:
            disable(desk, "GONE")
        return Side(fast, desks[0]), Side(ordinary, desks[1])

    return make


def as_json(body: Any) -> bytes:
    return json.dumps(body).encode()


def headers(*more: tuple[bytes, bytes], content_type: bytes = b"application/json") -> tuple[tuple[bytes, bytes], ...]:
    return ((b"content-type", content_type), *more)


GOOD = st.sampled_from(
    [
        create(),
        create(quantity="2"),
        limit(),
        create(symbol=" aapl "),
        create(symbol="GONE"),
        cancel(INTENT),
        replace(INTENT),
    ]
)
BAD = st.sampled_from(
    [
        create(quantity="0"), create(quantity="NaN"), create(symbol="A B"), create(symbol="\u0410"), create(side="buy"),
        cancel(UNKNOWN),
        create(Stop={"quantity": "1", "stop_price": "1", "time_in_force": "IOC"}), create(Market={}, Limit={}),
        replace(INTENT, Market={"quantity": "1"}), replace(INTENT.upper()), cancel("x"), {}, [], {"command": None},
    ]
)  # fmt: skip
RAW = st.sampled_from(
    [
        b"", b"{", b"null", b'"x"', b"NaN", b"\xef\xbb\xbf{}", b"\xff", b'{"command": 1, "command": 2}', b"{} {}",
        b'{"command": "\\ud800"}', b'{"command": "\\u0000"}', b"[" * 33 + b"]" * 33, b"1" * 5000, b'{"command": 1e400}',
        as_json(create()).ljust(MAX_BYTES), as_json(create()).ljust(MAX_BYTES + 1), b" " * 3 * MAX_BYTES,
    ]
)  # fmt: skip
NAMES = st.sampled_from(["command", "type", "payload", "spec"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | NAMES, inner, max_size=3),
    max_leaves=8,
)
ONCE = st.sampled_from([(), (), ((b"idempotency-key", b"k"),), ((b"idempotency-key", b"other"),)])
PLAIN = st.builds(lambda body, once: Sent(as_json(body), headers(*once)), GOOD, ONCE)
HEADERS = st.sampled_from(
    [
        (b"idempotency-key", b""), (b"idempotency-key", b"k" * 256), (b"idempotency-key", b"caf\xe9"),
        (b"idempotency-key", b"a\tb"), (b"x-request-id", b"mine"), (b"x-request-id", b"no good"),
        (b"x-request-id", b"\xe9"), (b"traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-00"),
        (b"traceparent", b"zz"), (b"authorization", b"Bearer x"), (b"x-api-key", b"tip_paper_x"),
        (b"x-organization-id", UNKNOWN.encode()), (b"content-encoding", b"gzip"), (b"accept", b"text/html"),
        (b"host", b"tip"), (b"host", b"no good/host"), (b"host", b"tip:port"), (b"if-match", b'"1"'),
        (b"content-type", b"application/json"), (b"x-forwarded-for", b"1.2.3.4"), (b"cookie", b"\xff=\xff"),
    ]
)  # fmt: skip
TYPES = st.sampled_from(
    [b"application/json; charset=utf-8", b"application/json; charset=latin-1", b"text/plain", b"APPLICATION/JSON", b""]
)
PATHS = st.sampled_from(
    [
        "/v1/accounts/{ACCOUNT_ID}/intents", "/v1/accounts/{account_id}/intents/", f"/v1/accounts/{UNKNOWN}/intents",
        "/v1/accounts/x/intents", "/v1/accounts/{account_id}%2Fintents", "/v1//accounts/{account_id}/intents",
        "/v1/accounts/{account_id}/intents/batch",
    ]
)  # fmt: skip
ODDITIES = st.one_of(
    st.builds(dict, body=BAD.map(as_json)),
    st.builds(dict, body=RAW | JSON.map(as_json) | st.binary(max_size=20)),
    st.builds(dict, headers=st.lists(HEADERS, min_size=1, max_size=3).map(lambda odd: headers(*odd))),
    st.builds(dict, headers=TYPES.map(lambda content_type: headers(content_type=content_type))),
    st.builds(
        dict, credential=st.sampled_from(["live", "paper_read_only", STRANGER, STRANGER[:-1], "none", "caf\u00e9"])
    ),
    st.builds(dict, method=st.sampled_from(["GET", "HEAD", "OPTIONS", "PUT", "FOO"])),
    st.builds(dict, path=PATHS),
    st.builds(dict, in_chunks=st.just(True)),
    st.builds(dict, query=st.sampled_from([b"dry_run=true", b"dry_run=x", b"dry_run=false", b"x=1", b"%FF"])),
)
ODD = st.builds(lambda sent, odd: sent._replace(**odd), PLAIN, ODDITIES)
TWICE_ODD = st.builds(lambda sent, odd: sent._replace(**odd), ODD, ODDITIES)
REQUESTS = st.one_of(PLAIN, PLAIN, PLAIN, ODD, ODD, TWICE_ODD)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(REQUESTS, min_size=1, max_size=8))
@example([Sent(as_json(create()), headers((b"content-type", b"application/json")))])
@example([Sent(as_json(create()).ljust(MAX_BYTES + 1), headers(), in_chunks=True)])
def test_both_ways_answer_alike_whatever_is_sent(sides: Callable[[], tuple[Side, Side]], requests: list[Sent]) -> None:
    fast, ordinary = sides()

    answers = zip(*(serving.run(side.send_all(requests)) for side in (fast, ordinary)), strict=True)

    for answer, ordinary_answer in answers:
        assert answer == ordinary_answer
        assert answer.status < 500
    assert kept(fast.desk) == kept(ordinary.desk)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(REQUESTS, min_size=2, max_size=8))
def test_requests_that_come_at_once_are_answered_as_those_that_come_alone(
    sides: Callable[[], tuple[Side, Side]], requests: list[Sent]
) -> None:
    pairs = [sides() for _ in requests]

    async def at_once() -> list[Any]:
        return await asyncio.gather(*(fast.exchange(sent) for (fast, _), sent in zip(pairs, requests, strict=True)))

    async def alone() -> list[Any]:
        return [await ordinary.exchange(sent) for (_, ordinary), sent in zip(pairs, requests, strict=True)]

    assert serving.run(at_once()) == serving.run(alone())
    assert [kept(fast.desk) for fast, _ in pairs] == [kept(ordinary.desk) for _, ordinary in pairs]


def kept(desk: Desk) -> dict[str, int]:
    return {table: len(desk.rows(table)) for table in ("action", "intent", "idempotency", "refusal")}
