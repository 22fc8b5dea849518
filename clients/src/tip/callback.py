"""Where a browser on this machine brings the answer of a provider: a port of the loopback address (RFC 8252)."""

from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tip.exits import WRONG_USAGE, Failure

PATH = "/callback"
PAGE = "You can close this page and go back to the terminal."


class Callback:
    """Listens while it is open."""

    def __init__(self, port: int = 0) -> None:
        self._answer: dict[str, str] | None = None
        try:
            self._server = HTTPServer(("127.0.0.1", port), self._handler())
        except OSError as error:
            raise Failure(f"port {port} cannot be listened on: {error.strerror}", WRONG_USAGE) from None
        self.address = f"http://127.0.0.1:{self._server.server_port}{PATH}"

    def __enter__(self) -> "Callback":
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._server.server_close()

    def wait(self) -> dict[str, str]:
        """What the provider sent, once; other requests, such as that for an icon, are no answer."""
        while self._answer is None:
            self._server.handle_request()
        return self._answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        callback = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                found = parts.path == PATH and "state" in parts.query
                if found:
                    callback._answer = dict(parse_qsl(parts.query))
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Cache-Control", "no-store")
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(PAGE.encode() if found else b"")

            def log_message(self, *_: Any) -> None:
                """The address has a code in it."""

        return Handler
