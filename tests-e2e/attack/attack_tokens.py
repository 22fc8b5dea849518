"""Tokens and keys that prove nothing, by the hundred thousand: not one may open anything, on any transport."""

import hashlib
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
from attack_cells import ALL_TYPES, STATUSES
from attack_findings import Findings
from attack_http import Answer, HttpConnection, NoAnswer, written
from attack_mischief import MISCHIEF, mangled_key
from attack_options import Size
from attack_platform import Platform
from attack_progress import Progress
from attack_tenants import Builder, Headers, Tenant, bearer, keyed
from attack_workers import in_processes, in_threads, slices

from trading_proto import trading_pb2, trading_pb2_grpc

PART = "tokens"
REFUSED = frozenset({400, 401, 431})
"""400: what cannot even be a header value, or is two credentials; 431: what is too long to be read."""
LIMITED, SILENT = 429, 0
WAIT_S, WAITS = 1.0, 90
EVERY_STREAM = 40
"""One token in so many is also shown to the event stream, by turns over HTTP and gRPC."""
EVERY_KEY = 5
"""An API key comes beside one token in so many."""
GOOD_TOKENS = 200
SLICE = 2_000
DISTINCT = 0.99
"""Of the tokens tried; what is left is chance."""
JSON = (("Content-Type", "application/json"),)


@dataclass(frozen=True)
class Truth:
    """Good credentials of all kinds, of which the bad ones are made."""

    web: tuple[str, int]
    events: tuple[str, int]
    stream_target: str
    account_id: str
    tokens: tuple[str, ...]
    keys: tuple[str, ...]
    public_jwk: dict[str, Any]
    seed: int


@dataclass
class Outcome:
    kinds: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    accepted: list[tuple[str, str]] = field(default_factory=list)
    """Case, detail."""
    digests: set[bytes] = field(default_factory=set)
    """Of the tokens."""
    keys: int = 0

    def add(self, other: "Outcome") -> None:
        self.kinds.update(other.kinds)
        self.places.update(other.places)
        self.accepted += other.accepted
        self.digests |= other.digests
        self.keys += other.keys


def run(platform: Platform, builder: Builder, size: Size, seed: int, findings: Findings, progress: Progress) -> None:
    if findings.only is not None and not findings.only.isdigit():
        return
    truth = prepared(platform, builder, seed)
    _good_ones_open(truth, findings)
    numbers = slices(size.tokens, SLICE)
    if findings.only is not None:
        findings.chosen(findings.only)
        numbers = [range(int(findings.only), int(findings.only) + 1)]
    total = Outcome()
    for future in in_processes(attempts, ((truth, part, size.connections) for part in numbers), size.processes):
        try:
            outcome = future.result()
        except Exception as problem:  # noqa: BLE001 - a slice that broke has tested nothing
            findings.add(PART, "a slice of tokens broke", None, repr(problem))
            continue
        total.add(outcome)
        for case, detail in outcome.accepted:
            findings.add(PART, "a credential that proves nothing was accepted", case, detail)
        _note(total, findings)
        progress.at(total.kinds.total(), size.tokens)
    if len(total.digests) < DISTINCT * total.kinds.total():
        detail = f"{len(total.digests)} of {total.kinds.total()}"
        findings.add(PART, "too many of the tokens are the same", None, detail)
    _good_ones_open(truth, findings)


def _note(total: Outcome, findings: Findings) -> None:
    findings.note("distinct tokens tried", len(total.digests))
    findings.note("by kind", dict(sorted(total.kinds.items())))
    findings.note("API keys tried", total.keys)
    findings.note("tokens and keys tried on", dict(sorted(total.places.items())))


def prepared(platform: Platform, builder: Builder, seed: int) -> Truth:
    tenant: Tenant = builder.tenant("impersonated", trades=False)
    keys = builder.answer("GET", "/.well-known/jwks.json", ()).json()["keys"]
    roles = sorted(tenant.tokens)
    users = (
        builder.identity.user_token(tenant.subject(role), tenant.external_id, role)
        for role in (roles[number % len(roles)] for number in range(GOOD_TOKENS))
    )
    return Truth(platform.web, platform.events, platform.stream_target, tenant.accounts["paper"],
                 (builder.operator.token, *users), tuple(tenant.api_keys.values()), keys[0], seed)  # fmt: skip


def _good_ones_open(truth: Truth, findings: Findings) -> None:
    """Before and after: else refusing everything would pass."""
    with HttpConnection(truth.web) as http:
        for headers in (*map(bearer, truth.tokens[:20]), *map(keyed, truth.keys)):
            answer = http.exchange(written("GET", "/v1/auth/self", headers))
            if answer.status != 200:
                findings.add(PART, "a good credential is refused", None, f"{answer.status} {answer.text}")


def attempts(truth: Truth, numbers: range, connections: int) -> Outcome:
    channel = grpc.insecure_channel(truth.stream_target)
    stub, outcomes = trading_pb2_grpc.TradingServiceStub(channel), list[Outcome]()

    def work(drawn: Iterator[int]) -> None:
        outcome = Outcome()
        outcomes.append(outcome)
        with HttpConnection(truth.web) as http:
            for number in drawn:
                _attempt(truth, number, http, stub, outcome)

    in_threads(work, numbers, min(connections, len(numbers)))
    channel.close()
    total = Outcome()
    for outcome in outcomes:
        total.add(outcome)
    return total


def _attempt(truth: Truth, number: int, http: HttpConnection, stub: Any, outcome: Outcome) -> None:
    kind, made = token(truth, number)
    outcome.kinds[kind] += 1
    outcome.digests.add(hashlib.sha256(made.encode("utf-8", "surrogateescape")).digest()[:12])
    tried = [(kind, bearer(made))]
    if number % EVERY_KEY == 0:
        outcome.keys += 1
        tried.append(("API key", key(truth, number)))
    for name, headers in tried:
        for place, status in _shown(truth, number, headers, http, stub):
            outcome.places[place] += 1
            if status not in REFUSED:
                outcome.accepted.append((str(number), f"{name} on {place}: {status} {str(headers)[:300]}"))


def _shown(truth: Truth, number: int, headers: Headers, http: HttpConnection, stub: Any) -> list[tuple[str, int]]:
    found = [("the web port", _status(http, written("GET", "/v1/auth/self", headers)))]
    if number % 7 == 0:  # submits have a way of their own through the web process
        path = f"/v1/accounts/{truth.account_id}/intents"
        found.append(("a submit", _status(http, written("POST", path, (*headers, *JSON), b'{"command": 1}'))))
    if number % EVERY_STREAM == 0:
        with HttpConnection(truth.events) as events:
            path = f"/v1/accounts/{truth.account_id}/events"
            found.append(("Server-Sent Events", _status(events, written("GET", path, headers))))
    if number % EVERY_STREAM == EVERY_STREAM // 2:
        found.append(("gRPC", _over_grpc(truth, headers, stub)))
    return found


def _status(http: HttpConnection, request: bytes) -> int:
    """Not a quota's word: whoever is limited waits and comes again."""
    for _ in range(WAITS):
        answer = _answer(http, request) or _answer(http, request)  # a kept connection may have been closed meanwhile
        if answer is None:
            return SILENT
        if answer.status != LIMITED:
            return answer.status
        time.sleep(WAIT_S)
    return LIMITED


def _answer(http: HttpConnection, request: bytes) -> Answer | None:
    """Of a stream that opens only the head, since its end would not come."""
    try:
        http.send(request)
        status, headers = http.head()
        length = int(dict(headers).get("content-length", "0"))
        answer = Answer(status, headers, http.exactly(length) if status >= 400 else b"")
    except (OSError, NoAnswer):
        http.close()
        return None
    if answer.closes or status < 400:
        http.close()
    return answer


def _over_grpc(truth: Truth, headers: Headers, stub: Any) -> int:
    message = trading_pb2.SubscribeEventsRequest(trading_account_id=truth.account_id, subscriptions=ALL_TYPES)
    try:
        for _ in stub.SubscribeEvents(message, metadata=[(name.lower(), value) for name, value in headers], timeout=30):
            return 200
    except grpc.RpcError as error:
        too_long = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "metadata" in str(error.details())
        return 431 if too_long else STATUSES.get(error.code(), 500)
    except ValueError:
        return 400  # the client library itself does not send such a header
    return 200


def token(truth: Truth, number: int) -> tuple[str, str]:
    """The same kind of mischief for the same seed and number, and what it made of a good token."""
    dice = random.Random(f"{truth.seed}:{number}")
    kind = dice.choice(sorted(MISCHIEF))
    made = MISCHIEF[kind](dice, dice.choice(truth.tokens), truth.public_jwk)
    return kind, made if made not in truth.tokens else made[:-1]


def key(truth: Truth, number: int) -> Headers:
    dice = random.Random(f"{truth.seed}:key:{number}")
    return keyed(mangled_key(dice, dice.choice(truth.keys)))
