"""`python -m tip_testing.loopback_exchange FILE PORT ACCOUNTS`: Binance with so many accounts, in a process of its own.

On SIGTERM it writes what it has done into the file, one order to a line, and ends.
"""

import json
import signal
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from tip_testing.loopback_exchange.book import Book, Order
from tip_testing.loopback_exchange.server import LoopbackExchange


def orders(books: list[Book]) -> Iterator[dict[str, Any]]:
    for book in books:
        for order in book.orders:
            yield {"account": book.uid, **_shown(order)}


def _shown(order: Order) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in vars(order).items()}


def main(file: str, port: str, accounts: str) -> None:
    exchange = LoopbackExchange("binance", port=int(port), accounts=int(accounts))
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ended.wait()
    exchange.stop()
    Path(file).write_text("".join(json.dumps(order) + "\n" for order in orders(exchange.books)))


if __name__ == "__main__":
    main(*sys.argv[1:])
