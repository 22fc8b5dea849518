"""Tokens and keys that prove nothing, by the hundred thousand: not one may open anything, on any transport."""

import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import grpc
from attack_cells import ALL_TYPES, STATUSES
from attack_findings import Findings
from attack_fuzz import in_processes, shares
from attack_http import Answer, HttpConnection, NoAnswer, written
from attack_mischief import MISCHIEF, mangled_key
from attack_options import Size
from attack_platform import Platform
from attack_tenants import Builder, Headers, Tenant, bearer, keyed

from trading_proto import trading_pb2, trading_pb2_grpc

PART = "tokens"
REFUSED = frozenset({400, 401, 431})
"""400: what cannot even be a header value, or is two credentials; 431: what is too long to be read."""
LIMITED = 429
WAIT_S, WAITS = 1.0, 90
EVERY_STREAM = 40
"""One token in so many is also shown to the event stream, by turns over HTTP and gRPC."""


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


def run(platform: Platform, builder: Builder, size: Size, seed: int, case: str | None, findings: Findings) -> None:
    truth = prepared(platform, builder, seed)
    _good_ones_open(truth, findings)
    numbers = [range(int(case), int(case) + 1)] if case else shares(size.tokens, size.processes)
    total: Counter[str] = Counter()
    for counted, accepted in in_processes(attempts, [(truth, share) for share in numbers]):
        total += counted
        for name, detail in accepted:
            findings.add(PART, "a credential that proves nothing was accepted", name, detail)
    _good_ones_open(truth, findings)
    findings.note("credentials tried", sum(count for name, count in total.items() if not name.startswith("on ")))
    findings.note("by kind", {name: count for name, count in sorted(total.items()) if not name.startswith("on ")})
    findings.note("also tried", {name: count for name, count in sorted(total.items()) if name.startswith("on ")})


def prepared(platform: Platform, builder: Builder, seed: int) -> Truth:
    tenant: Tenant = builder.tenant("impersonated")
    keys = builder.answer("GET", "/.well-known/jwks.json", ()).json()["keys"]
    tokens = (*tenant.tokens.values(), builder.operator.token)
    return Truth(platform.web, platform.events, platform.stream_target, tenant.accounts["paper"], tokens,
                 tuple(tenant.api_keys.values()), keys[0], seed)  # fmt: skip


def _good_ones_open(truth: Truth, findings: Findings) -> None:
    """Before and after: else refusing everything would pass."""
    with HttpConnection(truth.web) as http:
        for headers in (*map(bearer, truth.tokens), *map(keyed, truth.keys)):
            answer = http.exchange(written("GET", "/v1/auth/self", headers))
            if answer.status != 200:
                findings.add(PART, "a good credential is refused", "0", f"{answer.status} {answer.text}")


def attempts(truth: Truth, numbers: range) -> tuple[Counter[str], list[tuple[str, str]]]:
    counted: Counter[str] = Counter()
    accepted = []
    channel = grpc.insecure_channel(truth.stream_target)
    stub = trading_pb2_grpc.TradingServiceStub(channel)
    with HttpConnection(truth.web) as http:
        for number in numbers:
            kind, headers = credential(truth, number)
            counted[kind] += 1
            for place, status in _shown(truth, number, headers, http, stub):
                counted[f"on {place}"] += 1
                if status not in REFUSED:
                    accepted.append((str(number), f"{kind} on {place}: {status} {str(headers)[:300]}"))
    channel.close()
    return counted, accepted


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


JSON = (("Content-Type", "application/json"),)


def _status(http: HttpConnection, request: bytes) -> int:
    """Not a quota's word: whoever is limited waits and comes again."""
    for _ in range(WAITS):
        try:
            http.send(request)
            status, headers = http.head()
        except (OSError, NoAnswer):
            http.close()
            time.sleep(0.05)
            continue
        fields = dict(headers)
        body = http.exactly(int(fields.get("content-length", "0")))
        answer = Answer(status, headers, body)
        if answer.closes or status < 400:
            http.close()
        if status != LIMITED:
            return status
        time.sleep(WAIT_S)
    return LIMITED


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


def credential(truth: Truth, number: int) -> tuple[str, Headers]:
    """The same kind of mischief for the same seed and number."""
    dice = random.Random(f"{truth.seed}:{number}")
    if number % 5 == 0:
        return "API key", keyed(mangled_key(dice, dice.choice(truth.keys)))
    name = dice.choice(sorted(MISCHIEF))
    token = dice.choice(truth.tokens)
    made = MISCHIEF[name](dice, token, truth.public_jwk)
    return name, bearer(made if made not in truth.tokens else made[:-1])
