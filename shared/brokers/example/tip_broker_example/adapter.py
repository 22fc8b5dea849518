"""What the broker's HTTP API means in the platform's words.

GET    /account            {"id", "currency", "cash"}
POST   /orders             an order; 409 if its client_id is taken, 422 if it is refused
GET    /orders/{id}        an order, or 404
GET    /orders             {"orders": [...]}; client_id=, open=true, since=
DELETE /orders/{id}        204, whatever becomes of it
GET    /positions          {"positions": [{"symbol", "quantity"}]}
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tip_brokers import (
    Balance,
    BrokerSettings,
    Change,
    Check,
    ClientIds,
    CredentialRefused,
    DuplicateClientOrderId,
    Execution,
    NewOrder,
    Order,
    OrderStatus,
    OrderUpdate,
    OutcomeUnknown,
    Position,
    Quote,
    RateLimited,
    Refused,
    no_check,
)
from tip_brokers.answers import (
    parse,
    parse_amount,
    parse_decimal,
    parse_moment,
    parse_word,
    plain,
    reason,
    timestamp,
    understood,
)
from tip_brokers.http_client import HttpClient

STATUSES = {
    "open": OrderStatus.WORKING,
    "done": OrderStatus.FILLED,
    "cancelled": OrderStatus.CANCELED,
}


class Connection:
    """The way to the broker, shared by all accounts there."""

    def __init__(self, address: str, settings: BrokerSettings) -> None:
        self.http = HttpClient(address, connect_seconds=settings.connect_seconds, read_seconds=settings.read_seconds)

    def account(self, secret: Mapping[str, str]) -> "Example":
        return Example(self.http, secret["login"], secret["token"])


class Example:
    """One account."""

    client_ids = ClientIds.UNIQUE

    def __init__(self, http: HttpClient, login: str, token: str) -> None:
        self._http, self._headers = http, {"X-Login": login, "Authorization": f"Bearer {token}"}

    @property
    def call_seconds(self) -> float:
        return self._http.call_seconds

    def account_id(self) -> str:
        with understood():
            return parse_word(self._call("GET", "/account")["id"])
        raise AssertionError

    def create(self, order: NewOrder, check: Check = no_check) -> Order:
        body = {
            "client_id": order.client_order_id,
            "symbol": order.symbol,
            "side": order.order_side,
            "quantity": plain(order.quantity),
            "limit": plain(order.limit_price),
            "until": order.time_in_force,
        }
        return _order(self._call("POST", "/orders", check, json=body))

    def replace(self, broker_order_id: str, change: Change, check: Check = no_check) -> Order:
        raise Refused("REPLACEMENT_NOT_POSSIBLE", "This broker replaces no orders.")

    def cancel(self, broker_order_id: str, check: Check = no_check) -> None:
        self._call("DELETE", f"/orders/{broker_order_id}", check)

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        found = self._orders(client_id=client_order_id)
        return found[0] if found else None

    def order(self, broker_order_id: str) -> Order | None:
        try:
            return _order(self._call("GET", f"/orders/{broker_order_id}"))
        except _Absent:
            return None

    def open_orders(self) -> Sequence[Order]:
        return self._orders(open="true")

    def orders(self, after: datetime) -> Sequence[Order]:
        return self._orders(since=timestamp(after))

    def _orders(self, **query: str) -> list[Order]:
        with understood():
            return [_order(row) for row in self._call("GET", "/orders", params=query)["orders"]]
        raise AssertionError

    def executions(self, after: datetime) -> Sequence[Execution]:
        return ()  # it shows totals only, which is enough

    def positions(self) -> list[Position]:
        with understood():
            rows = self._call("GET", "/positions")["positions"]
            held = [(parse_word(row["symbol"]), parse_amount(row["quantity"])) for row in rows]
        return [Position(symbol, quantity, None, None, None, None) for symbol, quantity in held]

    def balance(self) -> Balance:
        with understood():
            account = self._call("GET", "/account")
            cash = parse_amount(account["cash"])
            return Balance(parse_word(account["currency"]), cash, cash, cash)
        raise AssertionError

    def quotes(self, symbols: Sequence[str]) -> list[Quote]:
        return []

    def listen(
        self, on_ready: Callable[[], None], on_update: Callable[[OrderUpdate], None], stop: threading.Event
    ) -> None:
        """Never called: the description says that there is no stream."""

    def _call(self, method: str, path: str, check: Check = no_check, **more: Any) -> Any:
        """What the broker answers. A definite no is Refused; what proves nothing either way is OutcomeUnknown."""
        answer = self._http.call(method, path, self._headers, check, **more)
        if answer.status == 204:
            return None
        if answer.status == 429:
            raise RateLimited("rate_limited", 1.0)
        if answer.status == 401:
            raise CredentialRefused
        if answer.status not in (200, 404, 409, 422):
            raise OutcomeUnknown(f"http_{answer.status}")
        body = parse(answer.content)
        if answer.status == 200:
            return body
        with understood():
            message = reason(body["message"])
        kinds = {404: _Absent, 409: DuplicateClientOrderId}
        raise kinds.get(answer.status, Refused)("BROKER_REFUSED", message)


class _Absent(Refused):
    """There is no such order."""


def _order(body: Any) -> Order:
    with understood():
        return Order(
            client_order_id=parse_word(body["client_id"]),
            broker_order_id=parse_word(body["id"]),
            status=STATUSES.get(body["status"], OrderStatus.WORKING),
            symbol=parse_word(body["symbol"]),
            order_side=parse_word(body["side"]),
            kind="Limit" if body["limit"] else "Market",
            quantity=parse_amount(body["quantity"]),
            filled_quantity=parse_amount(body["filled"]),
            average_price=parse_decimal(body["price"]),
            updated_at=parse_moment(body["changed_at"]),
            created_at=parse_moment(body["created_at"]),
        )
    raise AssertionError
