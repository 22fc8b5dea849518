"""The ingress of the containers, in this process: each path to its service, and 502 where that does not answer."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tip_local.web import service_of

EVENTS = re.compile(r"/v1/accounts/[^/]+/events(/ticket|/streams)?")
OF_CONNECTION = {"connection", "keep-alive", "transfer-encoding"}
PATIENCE_S = 20
DETAIL = "The service did not answer. Repeat a command with the same Idempotency-Key."


class Ingress(ThreadingHTTPServer):
    """`ports` has the services that are processes of their own; all else goes to `others`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ports: dict[str, int] = {}
        self.base = f"http://127.0.0.1:{self.server_port}"

    def port_of(self, path: str) -> int:
        name = "stream-gateway" if EVENTS.fullmatch(path) else service_of(path) or "others"
        return self.ports.get(name, self.ports.get("others", 0))

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: Ingress

    def hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        connection = HTTPConnection("127.0.0.1", self.server.port_of(path), timeout=PATIENCE_S)
        try:
            connection.request(self.command, self.path, body or None, dict(self._sent()))
            self._answer(connection.getresponse())
        except (OSError, HTTPException):
            with suppress(OSError):
                self._refuse(is_text=path == "/v1/users/me")
        finally:
            connection.close()

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Every method is handed on."""
        if name.startswith("do_"):
            return self.hand_on
        raise AttributeError(name)

    def _sent(self) -> Iterator[tuple[str, str]]:
        yield from ((name, value) for name, value in self.headers.items() if name.lower() not in OF_CONNECTION)
        yield "X-Forwarded-For", self.client_address[0]

    def _answer(self, answer: HTTPResponse) -> None:
        """As it comes, so that events are not collected. What breaks off now is seen as such: it has no end."""
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in OF_CONNECTION:
                self.send_header(name, value)
        self.end_headers()
        with suppress(OSError, HTTPException):
            while piece := answer.read1(65_536):
                self.wfile.write(piece)

    def _refuse(self, *, is_text: bool) -> None:
        problem = {"type": "urn:tip:problem:unavailable", "status": 502, "detail": DETAIL, "code": "unavailable"}
        body = (DETAIL if is_text else json.dumps(problem)).encode()
        self.send_response_only(502)
        self.send_header("Content-Type", "text/plain" if is_text else "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""
