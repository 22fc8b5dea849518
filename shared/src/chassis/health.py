"""How a worker shows that it is well: its loops go round (live) and it can do its work (ready)."""

import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from chassis import logs, metrics

log = logs.get(__name__)

LONGEST_TURN_SECONDS = 30.0


class Report(NamedTuple):
    well: bool
    facts: Mapping[str, Any]


class Pulse(threading.Event):
    """The request to stop. Every loop asks for it at every turn, so who no longer asks no longer turns."""

    def __init__(self, longest_turn_seconds: float = LONGEST_TURN_SECONDS) -> None:
        super().__init__()
        self._longest = longest_turn_seconds
        self._turned: dict[threading.Thread, float] = {}

    def is_set(self) -> bool:
        self._turned[threading.current_thread()] = time.monotonic()
        return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        self._turned[threading.current_thread()] = math.inf  # who rests does not hang
        try:
            return super().wait(timeout)
        finally:
            self._turned[threading.current_thread()] = time.monotonic()

    def report(self) -> Report:
        """Well if every loop that has not ended has turned lately."""
        earliest = time.monotonic() - self._longest
        loops = [(thread, turned) for thread, turned in list(self._turned.items()) if thread.is_alive()]
        hung = sorted(thread.name for thread, turned in loops if turned < earliest)
        return Report(not hung, {"hung": hung} if hung else {})


Ready = Callable[[], Report]


def serve(host: str, port: int, pulse: Pulse, ready: Ready) -> None:
    """Answer /health/live, /health/ready and /metrics from a thread of its own, until the process ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/health/live":
                self._tell("live", pulse.report)
            elif path == "/health/ready":
                self._tell("ready", ready)
            else:
                self._answer(HTTPStatus.OK, "text/plain; version=0.0.4", metrics.exposition())

        def _tell(self, word: str, ask: Callable[[], Report]) -> None:
            try:
                report = ask()
            except Exception as error:  # noqa: BLE001 - whatever is wrong, it is not well
                report = Report(False, {"error": type(error).__name__})
            if not report.well:
                log.warning("not_well", check=word, **report.facts)
            body = {"status": word if report.well else f"not {word}", **report.facts}
            status = HTTPStatus.OK if report.well else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "application/json", json.dumps(body).encode())

        def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_anything: object) -> None:
            """Asked every few seconds: not worth a line."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
