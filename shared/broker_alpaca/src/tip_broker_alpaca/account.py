"""One account at the broker. What an answer means is decided here once: nothing else reads a status code."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tip_broker_alpaca.quotes import batches, read_quotes
from tip_broker_alpaca.reading import (
    KINDS,
    read_account_id,
    read_balance,
    read_execution,
    read_message,
    read_order,
    read_position,
    read_update,
)
from tip_brokers.answers import parse, plain, reason, timestamp, understood
from tip_brokers.client_ids import ClientIds
from tip_brokers.http_client import Answer, HttpClient
from tip_brokers.protocol import (
    Balance,
    BrokerError,
    Change,
    Check,
    CredentialRefused,
    DuplicateClientOrderId,
    Execution,
    ListingTooLong,
    NewOrder,
    NotSent,
    Order,
    OrderUpdate,
    OutcomeUnknown,
    Position,
    Quote,
    RateLimited,
    Refused,
    StopExit,
    no_check,
)

PAGE = 500
ACTIVITY_PAGE = 100
MOST_ROWS = 50_000  # of one listing
LONGEST_RETRY_SECONDS = 900.0  # a header that requests more is rather broken than meant
SILENCE_SECONDS = 1.0  # how often a quiet stream checks whether it is to stop
MESSAGE_BYTES = 2**20  # of one message of the stream, decompressed
_DUPLICATE = 40010001


class Connection(HttpClient):
    """The way to all accounts at one address. Prices are at an address of their own, or else at the same."""

    def __init__(self, address: str, data_address: str | None = None, **seconds: float) -> None:
        super().__init__(address, **seconds)
        self.data = HttpClient(data_address, **seconds) if data_address else self

    def account(self, secret: Mapping[str, str]) -> "Alpaca":
        return Alpaca(self, secret["key_id"], secret["secret_key"])


class Alpaca:
    """One account there."""

    client_ids = ClientIds.UNIQUE

    def __init__(self, connection: Connection, key_id: str, secret_key: str) -> None:
        self._connection = connection
        self._headers = {"APCA-API-KEY-ID": key_id, "APCA-API-SECRET-KEY": secret_key}

    @property
    def call_seconds(self) -> float:
        return self._connection.call_seconds

    def account_id(self) -> str:
        return read_account_id(self._read("/v2/account"))

    def create(self, order: NewOrder, check: Check = no_check) -> Order:
        return read_order(self._change("POST", "/v2/orders", self.new_order(order), check))

    def new_order(self, order: NewOrder) -> dict[str, Any]:
        return {
            "symbol": order.symbol,
            "side": order.order_side.lower(),
            "type": KINDS[order.kind],
            "qty": plain(order.quantity) if order.notional is None else None,
            "notional": plain(order.notional),
            "time_in_force": order.time_in_force.lower(),
            "limit_price": plain(order.limit_price),
            "stop_price": plain(order.stop_price),
            "trail_price": plain(order.trail_amount),
            "trail_percent": plain(order.trail_percent),
            "extended_hours": order.extended_hours or None,
            "client_order_id": order.client_order_id,
            **(_oco(order, order.stop_exit) if order.stop_exit else {}),
        }

    def replace(self, broker_order_id: str, change: Change, check: Check = no_check) -> Order:
        body = {
            "qty": None if change.only_prices else plain(change.quantity),
            "time_in_force": None if change.only_prices else change.time_in_force.lower(),
            "limit_price": plain(change.limit_price),
            "stop_price": plain(change.stop_price),
            "trail": plain(change.trail_amount if change.trail_percent is None else change.trail_percent),
            "client_order_id": change.client_order_id,
        }
        return read_order(self._change("PATCH", f"/v2/orders/{broker_order_id}", body, check))

    def cancel(self, broker_order_id: str, check: Check = no_check) -> None:
        self._answered(self._connection.call("DELETE", f"/v2/orders/{broker_order_id}", self._headers, check))

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        found = self._found_order("/v2/orders:by_client_order_id", client_order_id=client_order_id, nested="true")
        return self._with_legs(found) if found and found.legs == () else found

    def _with_legs(self, found: Order) -> Order:
        """It was found, whatever another query for it says."""
        with suppress(BrokerError):
            return self._found_order(f"/v2/orders/{found.broker_order_id}", nested="true") or found
        return found

    def order(self, broker_order_id: str) -> Order | None:
        return self._found_order(f"/v2/orders/{broker_order_id}")

    def open_orders(self) -> Iterator[Order]:
        return self._orders(status="open")

    def orders(self, after: datetime) -> Iterator[Order]:
        return self._orders(status="all", after=timestamp(after))

    def _orders(self, **query: Any) -> Iterator[Order]:
        rows = self._listing("/v2/orders", PAGE, ("after", "submitted_at"), limit=PAGE, direction="asc", **query)
        return (read_order(row) for row in rows)

    def executions(self, after: datetime) -> Iterator[Execution]:
        query = {"after": timestamp(after), "direction": "asc", "page_size": ACTIVITY_PAGE}
        rows = self._listing("/v2/account/activities/FILL", ACTIVITY_PAGE, ("page_token", "id"), **query)
        return (read_execution(row) for row in rows)

    def _listing(self, path: str, page_rows: int, cursor: tuple[str, str], **query: Any) -> Iterator[Any]:
        """Every row, page by page. `cursor`: the parameter that continues the listing, and the field it comes from.

        A listing that goes in circles is a broken answer: what came of it so far counts for nothing.
        """
        parameter, field = cursor
        seen: set[str] = set()
        for _ in range(MOST_ROWS // page_rows):
            page = self._rows(path, **query)
            yield from page
            if len(page) < page_rows:
                return
            with understood():
                query[parameter] = str(page[-1][field])
            if query[parameter] in seen:
                raise OutcomeUnknown("listing_repeats")
            seen.add(query[parameter])
        raise ListingTooLong("listing_too_long")

    def positions(self) -> list[Position]:
        return [read_position(row) for row in self._rows("/v2/positions")]

    def balance(self) -> Balance:
        return read_balance(self._read("/v2/account"))

    def quotes(self, symbols: Sequence[str]) -> list[Quote]:
        """Stocks and coins have endpoints of their own; each request names a bounded number of symbols."""
        found: list[Quote] = []
        for paths, some in batches(symbols):
            query = {"symbols": ",".join(some)}
            quoted, traded = (self._data(path, query) for path in paths)
            found += read_quotes(some, quoted, traded)
        return found

    def _data(self, path: str, query: Mapping[str, str]) -> Any:
        return self._answered(self._connection.data.call("GET", path, self._headers, params=query))

    def listen(
        self, on_ready: Callable[[], None], on_update: Callable[[OrderUpdate], None], stop: threading.Event
    ) -> None:
        address = self._connection.address.replace("http", "ws", 1) + "/stream"
        try:
            with connect(
                address,
                open_timeout=5,
                close_timeout=1,
                ping_interval=10,
                ping_timeout=10,
                max_size=MESSAGE_BYTES,
                proxy=None,
            ) as socket:
                self._introduce(socket)
                on_ready()
                while not stop.is_set():
                    try:
                        raw = socket.recv(timeout=SILENCE_SECONDS)
                    except TimeoutError:
                        continue
                    update = read_update(raw)
                    if update:
                        on_update(update)
        except (WebSocketException, OSError) as error:
            raise NotSent(type(error).__name__) from None

    def _introduce(self, socket: Any) -> None:
        key_id, secret_key = self._headers.values()
        socket.send(json.dumps({"action": "auth", "key": key_id, "secret": secret_key}))
        with understood():
            status = read_message(socket.recv(timeout=5))["data"]["status"]
        if status != "authorized":
            raise CredentialRefused
        socket.send(json.dumps({"action": "listen", "data": {"streams": ["trade_updates"]}}))
        read_message(socket.recv(timeout=5))

    def _change(self, method: str, path: str, body: Mapping[str, Any], check: Check) -> Any:
        stated = {name: value for name, value in body.items() if value is not None}
        return self._answered(self._connection.call(method, path, self._headers, check, json=stated))

    def _read(self, path: str, **query: Any) -> Any:
        return self._answered(self._connection.call("GET", path, self._headers, params=query))

    def _rows(self, path: str, **query: Any) -> list[Any]:
        rows = self._read(path, **query)
        if not isinstance(rows, list):
            raise OutcomeUnknown("broken_answer")
        return rows

    def _found_order(self, path: str, **query: Any) -> Order | None:
        try:
            return read_order(self._read(path, **query))
        except _Absent:
            return None

    def _answered(self, answer: Answer) -> Any:
        """The body of a success. A definite no is Refused; what proves nothing either way is OutcomeUnknown."""
        status = answer.status
        if status == 204:
            return None
        if status == 429:
            raise RateLimited("rate_limited", _retry_after(answer))
        if status >= 500 or 300 <= status < 400:
            raise OutcomeUnknown(f"http_{status}")
        body = parse(answer.content)
        if status < 300:
            return body
        if not isinstance(body, dict):
            body = {}
        with understood():
            message = reason(body.get("message") or f"http {status}")
        if status == 401 or (status == 403 and message.startswith("forbidden")):
            raise CredentialRefused
        if status == 404:
            raise _Absent("404", message)
        if status == 408:
            raise OutcomeUnknown("http_408")
        if body.get("code") == _DUPLICATE or "client_order_id must be unique" in message:
            raise DuplicateClientOrderId("DUPLICATE_CLIENT_ORDER_ID", message)
        raise Refused(_code(status, message), message)


class _Absent(Refused):
    """There is no such thing at the broker."""


def _oco(order: NewOrder, stop: StopExit) -> dict[str, Any]:
    """Both prices stand in legs of their own, the client order id is that of the limit."""
    prices = {"stop_price": plain(stop.stop_price), "limit_price": plain(stop.limit_price)}
    return {
        "order_class": "oco",
        "limit_price": None,
        "take_profit": {"limit_price": plain(order.limit_price)},
        "stop_loss": {name: price for name, price in prices.items() if price is not None},
    }


def _code(status: int, message: str) -> str:
    lower = message.lower()
    if "buying power" in lower:
        return "INSUFFICIENT_BUYING_POWER"
    if "insufficient qty" in lower or "insufficient quantity" in lower:
        return "INSUFFICIENT_QUANTITY"
    return "BROKER_FORBADE" if status == 403 else "BROKER_REFUSED"


def _retry_after(answer: Answer) -> float:
    try:
        return min(LONGEST_RETRY_SECONDS, max(0.1, float(answer.headers.get("Retry-After", "1"))))
    except ValueError:
        return 1.0
