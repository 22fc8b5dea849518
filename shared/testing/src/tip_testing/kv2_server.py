"""The part of HashiCorp Vault's KV version 2 that we use, in one process-local server.

Written from the documented HTTP API, for machines without a Vault: same paths, statuses and bodies. The same suite runs
against a real one where VAULT_ADDR is set.
"""

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "test-token"


class Kv2Server:
    """Holds secrets by path. `sealed`, `refuse`, `revoked` and `open` are the ways in which it can be made to fail."""

    def __init__(self) -> None:
        self.secrets: dict[str, list[dict[str, Any] | None]] = {}
        self.sealed = False
        self.revoked = False
        self.refuse: set[str] = set()
        self.open = threading.Event()
        self.open.set()
        self.received = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.handle(self, None)

            def do_POST(self) -> None:
                outer.handle(self, json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}"))

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def handle(self, request: BaseHTTPRequestHandler, body: dict[str, Any] | None) -> None:
        self.received.set()
        self.open.wait()
        status, answer = self._answer(request.path, request.headers.get("X-Vault-Token"), body)
        raw = json.dumps(answer).encode()
        with suppress(OSError):  # the caller may have given up
            self._send(request, status, raw)

    def _send(self, request: BaseHTTPRequestHandler, status: int, raw: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(raw)))
        request.end_headers()
        request.wfile.write(raw)

    def _answer(self, path: str, token: str | None, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        if self.sealed:
            return 503, {"errors": ["Vault is sealed"]}
        if token != TOKEN or self.revoked:
            return 403, {"errors": ["permission denied"]}
        if path == "/v1/auth/token/lookup-self":
            return 200, {"data": {"id": "hidden"}}
        _, verb, name = path.removeprefix("/v1/").split("/", 2)
        if any(part in name for part in self.refuse):
            return 403, {"errors": ["1 error occurred: permission denied"]}
        if verb == "destroy":
            self.secrets[name] = [None for _ in self.secrets.get(name, [])]
            return 204, {}
        return self._read(name) if body is None else self._write(name, body)

    def _read(self, name: str) -> tuple[int, dict[str, Any]]:
        versions = self.secrets.get(name)
        if not versions:
            return 404, {"errors": []}
        data = versions[-1]
        metadata = {"version": len(versions), "destroyed": data is None, "deletion_time": ""}
        return 200 if data is not None else 404, {"data": {"data": data, "metadata": metadata}}

    def _write(self, name: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        versions = self.secrets.setdefault(name, [])
        cas = body.get("options", {}).get("cas")
        if cas is not None and cas != len(versions):
            return 400, {"errors": ["check-and-set parameter did not match the current version"]}
        versions.append(body["data"])
        return 200, {"data": {"version": len(versions), "destroyed": False, "deletion_time": ""}}
