"""One cell of the matrix, and how it is sent: over HTTP, as Server-Sent Events, over gRPC."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import grpc
from attack_callers import Caller
from attack_http import Answer, HttpConnection, NoAnswer, written
from attack_platform import Platform
from attack_rules import REFLECTION, Rule
from attack_targets import Target
from attack_tenants import JSON, Headers, Tenant
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from trading_proto import trading_pb2

STREAM_SECONDS = 30.0
ALL_TYPES = tuple(number for number in trading_pb2.EventType.values() if number)
STATUSES = {
    grpc.StatusCode.OK: 200,
    grpc.StatusCode.CANCELLED: 200,  # by us, after what was sent had been read
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
}


def _subscription(request: "Prepared") -> trading_pb2.SubscribeEventsRequest:
    """From the beginning of the log, so that all there is to see is seen."""
    return trading_pb2.SubscribeEventsRequest(
        trading_account_id=request.account_id, subscriptions=ALL_TYPES, resume_after_sequence=0
    )


# By method: its request, and the type of its answers.
GRPC_METHODS: dict[str, tuple[Callable[["Prepared"], Any], Any]] = {
    "trading.TradingService/SubscribeEvents": (_subscription, trading_pb2.TradingEvent),
    "grpc.health.v1.Health/Check": (lambda _: health_pb2.HealthCheckRequest(), health_pb2.HealthCheckResponse),
    "grpc.health.v1.Health/Watch": (lambda _: health_pb2.HealthCheckRequest(), health_pb2.HealthCheckResponse),
    REFLECTION: (
        lambda _: reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionResponse,
    ),
}


@dataclass(frozen=True)
class Cell:
    rule: Rule
    caller: Caller
    target: Target
    tenant: Tenant
    """Whose own objects are meant."""
    allowed: frozenset[int]

    @property
    def name(self) -> str:
        return f"{self.rule.listener} {self.rule.name} | {self.caller.name} | {self.target.name}"


@dataclass(frozen=True)
class Prepared:
    listener: str
    method: str
    path: str
    headers: Headers
    body: Any = None
    account_id: str = ""

    @property
    def known_already(self) -> str:
        """All that the caller knows already."""
        return f"{self.path} {self.headers} {json.dumps(self.body)} {self.account_id}"


def prepared(cell: Cell, values: dict[str, str], headers: Headers) -> Prepared:
    path = cell.rule.path
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    body = cell.rule.body(cell.tenant) if cell.rule.body else None
    if cell.rule.objects == "environment":
        body = {**body, "environment": cell.target.environment}
    sent = (*headers, *cell.rule.headers, *((JSON,) if body is not None else ()))
    return Prepared(cell.rule.listener, cell.rule.method, path, sent, body, values.get("account_id", ""))


class Sender:
    """The connections of one thread to all listeners."""

    def __init__(self, platform: Platform) -> None:
        self._web, self._addresses = HttpConnection(platform.web), {"web": platform.web, "events": platform.events}
        self._pages = HttpConnection(platform.events)
        self._channel = grpc.insecure_channel(platform.stream_target)

    def __enter__(self) -> "Sender":
        return self

    def __exit__(self, *_: object) -> None:
        self.reconnect()
        self._channel.close()

    def reconnect(self) -> None:
        """After something went wrong: whatever is left of an answer must not be taken for the next one."""
        self._web.close()
        self._pages.close()

    def send(self, request: Prepared) -> Answer:
        if request.listener == "grpc":
            return self._over_grpc(request)
        data = None if request.body is None else json.dumps(request.body).encode()
        if request.path.endswith("/events"):
            return self._as_stream(request)
        http = self._web if request.listener == "web" else self._pages
        return http.exchange(written(request.method, request.path, request.headers, data))

    def _as_stream(self, request: Prepared) -> Answer:
        """From the beginning of the log, so that all there is to see is seen."""
        with HttpConnection(self._addresses[request.listener], STREAM_SECONDS) as http:
            try:
                http.send(written("GET", f"{request.path}?resume_after_sequence=0", request.headers))
                status, headers = http.head()
                if status == 200:
                    return Answer(status, headers, http.first_bytes(b"event: replay_complete"))
                length = int(dict(headers).get("content-length", "0"))
                return Answer(status, headers, http.exactly(length))
            except OSError as problem:
                raise NoAnswer(repr(problem)) from None

    def _over_grpc(self, request: Prepared) -> Answer:
        """One answer, or all events up to the end of the replay. A single answer can be read as a stream of one."""
        message, answers = GRPC_METHODS[request.path]
        method = self._channel.unary_stream(f"/{request.path}", response_deserializer=answers.FromString)
        metadata = tuple((name.lower(), value) for name, value in request.headers)
        call = method(message(request).SerializeToString(), metadata=metadata, timeout=STREAM_SECONDS)
        seen = []
        try:
            for answer in call:
                seen.append(str(answer))
                if not isinstance(answer, trading_pb2.TradingEvent) or answer.HasField("replay_complete"):
                    break
        except grpc.RpcError as error:
            status = STATUSES.get(error.code(), 500)
            return Answer(status, (), f"{error.details()} {''.join(seen)}".encode())
        finally:
            call.cancel()
        return Answer(200, (), "".join(seen).encode())
