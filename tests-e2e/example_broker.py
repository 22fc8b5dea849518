"""The imaginary broker whose adapter is `shared/brokers/example`: an HTTP server of its own, in this process."""

import json
import threading
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

PRICE = Decimal(20)
LOGIN, TOKEN = "trader-1", "for-the-example-broker"


class ExampleBroker:
    """Market orders and limits at or above its price are filled at once."""

    def __init__(self) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                credential = self.headers.get("X-Login"), self.headers.get("Authorization")
                status, answer = 401, {"message": "who are you?"}
                if credential == (LOGIN, f"Bearer {TOKEN}"):
                    with outer._lock:
                        status, answer = outer._answer(self.command, self.path, json.loads(body) if body else None)
                content = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

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

    def _answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        address = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        match method, address.path.split("/")[1:]:
            case "GET", ["account"]:
                return 200, {"id": LOGIN, "currency": "USD", "cash": "100000"}
            case "GET", ["positions"]:
                return 200, {"positions": []}
            case "GET", ["orders"]:
                return 200, {"orders": [row for row in self.orders.values() if _is_meant(row, query)]}
            case "POST", ["orders"]:
                return self._create(body)
            case _, ["orders", order_id] if order_id in self.orders:
                return self._of_order(method, self.orders[order_id])
        return 404, {"message": "there is no such thing"}

    def _of_order(self, method: str, order: dict[str, Any]) -> tuple[int, Any]:
        if method == "GET":
            return 200, order
        self._end(order, "cancelled")
        return 204, None

    def _create(self, body: Any) -> tuple[int, Any]:
        if any(row["client_id"] == body["client_id"] for row in self.orders.values()):
            return 409, {"message": "client_id is taken"}
        now = datetime.now(UTC).isoformat()
        order = {**body, "id": str(uuid4()), "status": "open", "filled": "0", "price": None}
        self.orders[order["id"]] = order | {"created_at": now, "changed_at": now}
        if body["limit"] is None or Decimal(body["limit"]) >= PRICE:
            filled = {"filled": body["quantity"], "price": str(PRICE)}
            self._end(self.orders[order["id"]], "done", **filled)
        return 200, self.orders[order["id"]]

    def _end(self, order: dict[str, Any], status: str, **more: str) -> None:
        if order["status"] == "open":
            order |= {"status": status, "changed_at": datetime.now(UTC).isoformat(), **more}


def _is_meant(order: dict[str, Any], query: dict[str, str]) -> bool:
    return (
        query.get("client_id", order["client_id"]) == order["client_id"]
        and (query.get("open") != "true" or order["status"] == "open")
        and query.get("since", "") <= order["created_at"].replace("+00:00", "Z")
    )
