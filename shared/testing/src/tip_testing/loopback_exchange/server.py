"""The book over HTTP, in one of its dialects."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tip_testing.loopback_exchange import binance, kraken, okx
from tip_testing.loopback_exchange.book import KEY, SILENT_SECONDS, SLOW_SECONDS, UID, Book

Dialect = Callable[[Book, str, str, str, str, Any], tuple[int, Any]]
MARKETS = ("/exchangeInfo", "/AssetPairs", "/instruments")
NEW_ORDER = ("/order", "/AddOrder", "/batch-orders")
DIALECTS: dict[str, Dialect] = {"binance": binance.answer, "kraken": kraken.answer, "okx": okx.answer}


class LoopbackExchange:
    """Listens until `stop`. How an order's own answer behaves is its coin's doing; every key has its own account."""

    def __init__(self, dialect: str, *, port: int = 0, accounts: int = 1) -> None:
        self.book, *others = self.books = [_numbered(number) for number in range(accounts)]
        self._by_key = {book.key: book for book in (self.book, *others)}
        self.loses_markets = False
        """Whether what it trades cannot be read any more."""
        self.id = dialect
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                outer._answer(self)

            do_GET = do_POST = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        address = urlsplit(request.path)
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0)).decode()
        if self.loses_markets and address.path.endswith(MARKETS):
            request.close_connection = True
            return
        book = self._by_key.get(_key(request.headers), self.book)
        if book.lose_next and request.command == "POST" and address.path.endswith(NEW_ORDER):
            book.lose_next, request.close_connection = False, True
            return
        before = len(book.orders)
        status, answer = DIALECTS[self.id](book, request.command, address.path, address.query, body, request.headers)
        if len(book.orders) > before and not self._is_answered(request, book.orders[-1].coin):
            return
        content = json.dumps(answer).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _is_answered(self, request: BaseHTTPRequestHandler, coin: str) -> bool:
        if coin == "SLOW":
            time.sleep(SLOW_SECONDS)
        if coin == "SILENT":
            time.sleep(SILENT_SECONDS)
        if coin in ("SILENT", "CUT"):
            request.close_connection = True
            return False
        return True


def _numbered(number: int) -> Book:
    return Book(f"{KEY}-{number}" if number else KEY, UID + number)


def _key(headers: Any) -> str:
    return str(headers.get("X-MBX-APIKEY") or headers.get("API-Key") or headers.get("OK-ACCESS-KEY"))
