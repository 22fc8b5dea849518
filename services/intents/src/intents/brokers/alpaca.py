"""Alpaca's trading API, and whatever else speaks it: the platform's paper broker does.

The official SDK sets no time-outs, retries by sleeping and brings pandas; so this is `requests` with every time-out set
and no retry at all. What an answer means is decided here once: nothing else looks at a status code.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import requests
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from intents.brokers.checked_http import CheckedAdapter, written
from intents.brokers.protocol import (
    Balance,
    Change,
    Check,
    ClientIds,
    CredentialRefused,
    DuplicateClientOrderId,
    Execution,
    NewOrder,
    NotSent,
    Order,
    OrderStatus,
    OutcomeUnknown,
    Position,
    RateLimited,
    Refused,
    Told,
    Update,
    no_check,
)

CONNECT_SECONDS = 1.0
READ_SECONDS = 3.0
PAGE = 500
ACTIVITY_PAGE = 100
LONGEST_REASON = 200
LONGEST_RETRY_SECONDS = 900.0  # a header that asks for more is rather broken than meant
SILENCE_SECONDS = 1.0  # how often a quiet stream looks whether it is to stop
_DUPLICATE = 40010001

KINDS = {"Market": "market", "Limit": "limit", "Stop": "stop", "StopLimit": "stop_limit"}
_KIND_NAMES = {theirs: ours for ours, theirs in KINDS.items()}
STATUSES: Mapping[str, OrderStatus] = {
    "accepted": OrderStatus.PENDING,
    "pending_new": OrderStatus.PENDING,
    "accepted_for_bidding": OrderStatus.PENDING,
    "held": OrderStatus.PENDING,
    "new": OrderStatus.WORKING,
    "partially_filled": OrderStatus.WORKING,
    "done_for_day": OrderStatus.WORKING,
    "stopped": OrderStatus.WORKING,
    "suspended": OrderStatus.WORKING,
    "calculated": OrderStatus.WORKING,
    "pending_cancel": OrderStatus.PENDING_CANCEL,
    "pending_replace": OrderStatus.PENDING_REPLACE,
    "filled": OrderStatus.FILLED,
    "canceled": OrderStatus.CANCELED,
    "expired": OrderStatus.EXPIRED,
    "rejected": OrderStatus.REJECTED,
    "replaced": OrderStatus.REPLACED,
}
_TOLD = {"order_cancel_rejected": Told.CANCEL_REJECTED, "order_replace_rejected": Told.REPLACE_REJECTED}


class Connection:
    """One address, shared by all accounts that trade there. Each thread keeps its own connections open."""

    def __init__(
        self, address: str, *, connect_seconds: float = CONNECT_SECONDS, read_seconds: float = READ_SECONDS
    ) -> None:
        self.address = address.rstrip("/")
        self.call_seconds = connect_seconds + read_seconds
        self._timeouts = (connect_seconds, read_seconds)
        self._here = threading.local()

    def account(self, secret: Mapping[str, str]) -> "Alpaca":
        return Alpaca(self, secret["key_id"], secret["secret_key"])

    def call(
        self, method: str, path: str, headers: Mapping[str, str], check: Check = no_check, **more: Any
    ) -> requests.Response:
        """The answer, whatever its status; OutcomeUnknown or NotSent when there is none."""
        written.check = check
        try:
            return self._session().request(
                method, self.address + path, headers=headers, timeout=self._timeouts, allow_redirects=False, **more
            )
        except requests.exceptions.ConnectTimeout:
            raise NotSent("connect_timeout") from None
        except requests.exceptions.ConnectionError as error:
            if _never_connected(error):
                raise NotSent("connection_refused") from None
            raise OutcomeUnknown("connection_lost") from None
        except requests.exceptions.Timeout:
            raise OutcomeUnknown("timeout") from None
        except requests.exceptions.RequestException as error:
            raise OutcomeUnknown(type(error).__name__) from None

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._here, "session", None)
        if session is None:
            session = self._here.session = requests.Session()
            session.trust_env = False  # no proxy, no netrc: a password there must not replace the account's keys
            adapter = CheckedAdapter(pool_connections=1, pool_maxsize=1, max_retries=0)
            session.mount("http://", adapter)
            session.mount("https://", adapter)
        return session


def _never_connected(error: requests.exceptions.ConnectionError) -> bool:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return type(reason).__name__ in ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError")


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
        found = self._read("/v2/account")
        with _understood():
            return str(found["id"])
        raise AssertionError

    def create(self, order: NewOrder, check: Check = no_check) -> Order:
        body = {
            "symbol": order.symbol,
            "side": order.order_side.lower(),
            "type": KINDS[order.kind],
            "qty": _number(order.quantity),
            "time_in_force": order.time_in_force.lower(),
            "limit_price": _number(order.limit_price),
            "stop_price": _number(order.stop_price),
            "client_order_id": order.client_order_id,
        }
        return _order(self._change("POST", "/v2/orders", body, check))

    def replace(self, broker_order_id: str, change: Change, check: Check = no_check) -> Order:
        body = {
            "qty": _number(change.quantity),
            "time_in_force": change.time_in_force.lower(),
            "limit_price": _number(change.limit_price),
            "stop_price": _number(change.stop_price),
            "client_order_id": change.client_order_id,
        }
        return _order(self._change("PATCH", f"/v2/orders/{broker_order_id}", body, check))

    def cancel(self, broker_order_id: str, check: Check = no_check) -> None:
        self._answered(self._connection.call("DELETE", f"/v2/orders/{broker_order_id}", self._headers, check))

    def find(self, client_order_id: str) -> Order | None:
        return self._one("/v2/orders:by_client_order_id", client_order_id=client_order_id)

    def order(self, broker_order_id: str) -> Order | None:
        return self._one(f"/v2/orders/{broker_order_id}")

    def open_orders(self) -> Iterator[Order]:
        return self._orders("open", None)

    def orders(self, after: datetime) -> Iterator[Order]:
        return self._orders("all", _text(after))

    def _orders(self, status: str, after: str | None) -> Iterator[Order]:
        while True:
            page = self._read("/v2/orders", status=status, limit=PAGE, direction="asc", after=after)
            yield from (_order(one) for one in page)
            if len(page) < PAGE:
                return
            after = page[-1]["submitted_at"]

    def executions(self, after: datetime) -> Iterator[Execution]:
        token = None
        while True:
            page = self._read(
                "/v2/account/activities/FILL",
                after=_text(after),
                direction="asc",
                page_size=ACTIVITY_PAGE,
                page_token=token,
            )
            yield from (_activity(one) for one in page)
            if len(page) < ACTIVITY_PAGE:
                return
            token = page[-1]["id"]

    def positions(self) -> list[Position]:
        return [_position(one) for one in self._read("/v2/positions")]

    def balance(self) -> Balance:
        found = self._read("/v2/account")
        with _understood():
            amounts = [Decimal(found[name]) for name in ("cash", "equity", "buying_power")]
            return Balance(str(found["currency"]), *amounts)

    def listen(self, ready: Callable[[], None], hear: Callable[[Update], None], stop: threading.Event) -> None:
        address = self._connection.address.replace("http", "ws", 1) + "/stream"
        try:
            with connect(
                address, open_timeout=5, close_timeout=1, ping_interval=10, ping_timeout=10, max_size=2**20, proxy=None
            ) as socket:
                self._introduce(socket)
                ready()
                while not stop.is_set():
                    try:
                        raw = socket.recv(timeout=SILENCE_SECONDS)
                    except TimeoutError:
                        continue
                    update = _update(raw)
                    if update:
                        hear(update)
        except (WebSocketException, OSError) as error:
            raise NotSent(type(error).__name__) from None

    def _introduce(self, socket: Any) -> None:
        key_id, secret_key = self._headers.values()
        socket.send(json.dumps({"action": "auth", "key": key_id, "secret": secret_key}))
        with _understood():
            status = _message(socket.recv(timeout=5))["data"]["status"]
        if status != "authorized":
            raise CredentialRefused
        socket.send(json.dumps({"action": "listen", "data": {"streams": ["trade_updates"]}}))
        _message(socket.recv(timeout=5))

    def _change(self, method: str, path: str, body: Mapping[str, Any], check: Check) -> Any:
        stated = {name: value for name, value in body.items() if value is not None}
        return self._answered(self._connection.call(method, path, self._headers, check, json=stated))

    def _read(self, path: str, **query: Any) -> Any:
        return self._answered(self._connection.call("GET", path, self._headers, params=query))

    def _one(self, path: str, **query: Any) -> Order | None:
        try:
            return _order(self._read(path, **query))
        except _Absent:
            return None

    def _answered(self, answer: requests.Response) -> Any:
        """The body of a success. A definite no is Refused; what says nothing about the deed is OutcomeUnknown."""
        status = answer.status_code
        if status == 204:
            return None
        if status == 429:
            raise RateLimited("rate_limited", _retry_after(answer))
        if status >= 500 or 300 <= status < 400:
            raise OutcomeUnknown(f"http_{status}")
        body = _body(answer)
        if status < 300:
            return body
        if not isinstance(body, dict):
            body = {}
        message = str(body.get("message") or f"http {status}")[:LONGEST_REASON]
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


class _understood:  # noqa: N801 - reads as a word of the language
    """A body that is not what was agreed says nothing about what was done."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (KeyError, TypeError, ValueError, AttributeError, InvalidOperation, IndexError)):
            raise OutcomeUnknown("broken_answer") from None


def _body(answer: requests.Response) -> Any:
    with _understood():
        if b"\\u0000" in answer.content:
            raise ValueError  # which no database keeps
        return answer.json()


def _code(status: int, message: str) -> str:
    lower = message.lower()
    if "buying power" in lower:
        return "INSUFFICIENT_BUYING_POWER"
    if "insufficient qty" in lower or "insufficient quantity" in lower:
        return "INSUFFICIENT_QUANTITY"
    return "BROKER_FORBADE" if status == 403 else "BROKER_REFUSED"


def _retry_after(answer: requests.Response) -> float:
    try:
        return min(LONGEST_RETRY_SECONDS, max(0.1, float(answer.headers.get("Retry-After", "1"))))
    except ValueError:
        return 1.0


def _number(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")


def _decimal(value: object) -> Decimal | None:
    if value is None or value == "":
        return None
    number = Decimal(str(value))
    if not number.is_finite():
        raise ValueError
    return number


def _amount(value: object) -> Decimal:
    number = _decimal(value)
    if number is None:
        raise ValueError
    return number


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    """Alpaca counts nanoseconds; we keep what a datetime can."""
    return datetime.fromisoformat(text)


def _order(body: Any) -> Order:
    with _understood():
        return Order(
            client_order_id=str(body["client_order_id"]),
            broker_order_id=str(body["id"]),
            # A word we do not know yet is no reason to believe the order has ended.
            status=STATUSES.get(body["status"], OrderStatus.WORKING),
            symbol=str(body["symbol"]),
            order_side=str(body["side"]).upper(),
            kind=_KIND_NAMES.get(body.get("type") or body.get("order_type"), "Market"),
            quantity=_decimal(body.get("qty")),
            filled_quantity=_decimal(body["filled_qty"]) or Decimal(0),
            average_price=_decimal(body.get("filled_avg_price")),
            updated_at=_moment(body["updated_at"]),
            created_at=_moment(body["created_at"]),
            replaces=body.get("replaces"),
            replaced_by=body.get("replaced_by"),
        )
    raise AssertionError  # `_understood` never swallows without raising; this is for the type checker


def _activity(body: Any) -> Execution:
    with _understood():
        return Execution(
            id=str(body["id"]).rpartition("::")[2],
            broker_order_id=str(body["order_id"]),
            quantity=_amount(body["qty"]),
            price=_amount(body["price"]),
            occurred_at=_moment(body["transaction_time"]),
        )
    raise AssertionError


def _position(body: Any) -> Position:
    with _understood():
        return Position(
            str(body["symbol"]),
            _amount(body["qty"]),
            _decimal(body.get("avg_entry_price")),
            _decimal(body.get("current_price")),
            _decimal(body.get("market_value")),
            _decimal(body.get("unrealized_pl")),
        )
    raise AssertionError


def _message(raw: str | bytes) -> dict[str, Any]:
    with _understood():
        if (b"\\u0000" if isinstance(raw, bytes) else "\\u0000") in raw:  # type: ignore[operator]
            raise ValueError
        message = json.loads(raw)
        if not isinstance(message, dict):
            raise TypeError
        return message
    raise AssertionError


def _update(raw: str | bytes) -> Update | None:
    """None for everything that is not a trade update."""
    message = _message(raw)
    if message.get("stream") != "trade_updates":
        return None
    with _understood():
        data = message["data"]
        order, moment = _order(data["order"]), _moment(data.get("timestamp") or data["order"]["updated_at"])
        return Update(order, moment, _execution(data, order, moment), _TOLD.get(data["event"]))
    raise AssertionError


def _execution(data: Mapping[str, Any], order: Order, moment: datetime) -> Execution | None:
    if data.get("event") not in ("fill", "partial_fill") or not data.get("execution_id"):
        return None
    quantity, price = _amount(data["qty"]), _amount(data["price"])
    position = _decimal(data.get("position_qty"))
    return Execution(str(data["execution_id"]), order.broker_order_id, quantity, price, moment, position)
