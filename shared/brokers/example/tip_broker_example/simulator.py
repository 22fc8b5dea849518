"""The imaginary broker on loopback, for `tip broker check example`: an HTTP server with an account in memory.

A real package names the sandbox of its broker's vendor here if that runs on loopback, or a server like this one that
answers in the shapes of the broker's documentation. Faults are by symbol, so that a check can have them at will.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from tip_broker_example import ADDRESS
from tip_brokers import Broker, BrokerDescription, BrokerSettings
from tip_brokers.simulator import Simulator

PRICE = Decimal(20)
LOGIN, TOKEN = "trader-1", "for-the-example-broker"
SECRET = {"login": LOGIN, "token": TOKEN}
REFUSING, SILENT, HALVING = "NOPE", "HUSH", "HALF"


@contextmanager
def simulator(broker: BrokerDescription) -> Iterator[Simulator]:
    server = ExampleBroker()
    try:
        yield Simulator(
            settings={ADDRESS.variable: server.url},
            secret=SECRET,
            unknown_secret=SECRET | {"token": "unknown"},  # no password - it opens nothing # nosec B105
            resting="REST",
            filling="FILL",
            halving=HALVING,
            refusing=REFUSING,
            silent=SILENT,
            at=lambda address: _connected(broker, address),
        )
    finally:
        server.stop()


def _connected(broker: BrokerDescription, address: str) -> Broker:
    return broker.connect("paper", BrokerSettings({ADDRESS.variable: address}, read_seconds=1.0)).account(SECRET)


class ExampleBroker:
    """Market orders and limits at or above its price are filled at once."""

    def __init__(self) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                outer._serve(self)

            do_GET = do_POST = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        content = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        body: Any = json.loads(content) if content else {}
        status, answer = self._checked(request, body)
        if request.command == "POST" and status == 200 and body["symbol"] == SILENT:
            request.close_connection = True  # done, and never answered
            return
        _write(request, status, answer)

    def _checked(self, request: BaseHTTPRequestHandler, body: Any) -> tuple[int, Any]:
        if (request.headers.get("X-Login"), request.headers.get("Authorization")) != (LOGIN, f"Bearer {TOKEN}"):
            return 401, {"message": "who are you?"}
        with self._lock:
            return self._answer(request.command, request.path, body)

    def _answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        address = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        match method, address.path.split("/")[1:]:
            case "GET", ["account"]:
                return 200, {"id": LOGIN, "currency": "USD", "cash": "100000"}
            case "GET", ["positions"]:
                return 200, {"positions": self._positions()}
            case "GET", ["orders"]:
                return 200, {"orders": [row for row in self.orders.values() if _is_meant(row, query)]}
            case "POST", ["orders"]:
                return self._create(body)
            case _, ["orders", order_id] if order_id in self.orders:
                return self._of_order(method, self.orders[order_id])
        return 404, {"message": "there is no such thing"}

    def _positions(self) -> list[Mapping[str, str]]:
        held: dict[str, Decimal] = {}
        for order in self.orders.values():
            sign = 1 if order["side"] == "BUY" else -1
            held[order["symbol"]] = held.get(order["symbol"], Decimal(0)) + sign * Decimal(order["filled"])
        return [{"symbol": symbol, "quantity": str(quantity)} for symbol, quantity in held.items() if quantity]

    def _of_order(self, method: str, order: dict[str, Any]) -> tuple[int, Any]:
        if method == "GET":
            return 200, order
        self._end(order, "cancelled")
        return 204, None

    def _create(self, body: Any) -> tuple[int, Any]:
        if any(row["client_id"] == body["client_id"] for row in self.orders.values()):
            return 409, {"message": "client_id is taken"}
        if body["symbol"] == REFUSING:
            return 422, {"message": "this is not traded"}
        now = datetime.now(UTC).isoformat()
        order = {**body, "id": str(uuid4()), "status": "open", "filled": "0", "price": None}
        self.orders[order["id"]] = order | {"created_at": now, "changed_at": now}
        self._match(self.orders[order["id"]])
        return 200, self.orders[order["id"]]

    def _match(self, order: dict[str, Any]) -> None:
        if order["limit"] is not None and Decimal(order["limit"]) < PRICE:
            return
        if order["symbol"] == HALVING:
            order |= {"filled": str(Decimal(order["quantity"]) / 2), "price": str(PRICE)}
        else:
            self._end(order, "done", filled=order["quantity"], price=str(PRICE))

    def _end(self, order: dict[str, Any], status: str, **more: str) -> None:
        if order["status"] == "open":
            order |= {"status": status, "changed_at": datetime.now(UTC).isoformat(), **more}


def _write(request: BaseHTTPRequestHandler, status: int, answer: Any) -> None:
    content = b"" if answer is None else json.dumps(answer).encode()
    request.send_response(status)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)


def _is_meant(order: dict[str, Any], query: dict[str, str]) -> bool:
    is_named = query.get("client_id", order["client_id"]) == order["client_id"]
    is_listed = query.get("open") != "true" or order["status"] == "open"
    return bool(is_named and is_listed and query.get("since", "") <= order["created_at"].replace("+00:00", "Z"))
