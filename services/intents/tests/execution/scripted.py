"""A broker over HTTP that answers what a test has scripted."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SHOWN = {
    "client_order_id": "tip-1", "id": "b1", "status": "new", "symbol": "ABC", "side": "buy", "type": "limit",
    "qty": "1.5", "filled_qty": "0", "filled_avg_price": None, "updated_at": "2026-01-05T12:00:00.123456789Z",
    "created_at": "2026-01-05T12:00:00Z",
}  # fmt: skip
PATIENCE_SECONDS = 120.0
PATIENT = {"BROKER_READ_SECONDS": str(PATIENCE_SECONDS), "EXECUTOR_LEASE_SECONDS": "600"}
"""Settings of a process that waits so long for an answer."""


class Scripted:
    """A broker that says what its script says."""

    def __init__(self) -> None:
        self.answer: tuple[int, bytes, dict[str, str]] | None = (200, b"{}", {})
        self.requests: list[tuple[str, str, Any]] = []
        self.key_ids: list[str | None] = []
        """Whose request each was."""
        self.slow: set[str] = set()
        """Key ids whose requests are answered `slow_seconds` late."""
        self.slow_seconds = 0.0
        self._ending = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.key_ids.append(self.headers.get("APCA-API-KEY-ID"))
                outer.requests.append((self.command, self.path, json.loads(body) if body else None))
                if self.headers.get("APCA-API-KEY-ID") in outer.slow:
                    outer._ending.wait(outer.slow_seconds)
                if outer.answer is None:
                    self.connection.close()
                    self.close_connection = True
                    return
                status, content, headers = outer.answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                try:
                    self.end_headers()
                    self.wfile.write(content)
                except ConnectionError:  # the caller has gone
                    self.close_connection = True

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def says(self, status: int, body: Any, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answer = (status, content, {name.replace("_", "-"): value for name, value in headers.items()})

    def slow_requests(self) -> int:
        """How many came in the name of `slow`; accounts that another test has left send in their own."""
        return sum(key_id in self.slow for key_id in list(self.key_ids))

    def end(self) -> None:
        """And answer what still waits."""
        self._ending.set()
        self.server.shutdown()
        self.server.server_close()
