"""One account at an exchange: its verbs in ccxt's unified words."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol

from ccxt import BaseError

from tip_broker_ccxt import reading
from tip_broker_ccxt.endings import Endings
from tip_broker_ccxt.exchanges import Exchange, Query
from tip_broker_ccxt.failures import forget_answers, understood_by
from tip_broker_ccxt.limits import check_limits
from tip_brokers.answers import MISREAD, plain, timestamp, understood
from tip_brokers.checked_http import written
from tip_brokers.client_ids import ClientIds
from tip_brokers.protocol import (
    BROKEN_ANSWER,
    OPEN,
    Balance,
    Change,
    Check,
    CredentialRefused,
    Execution,
    NewOrder,
    Order,
    OrderStatus,
    OrderUpdate,
    OutcomeUnknown,
    Position,
    Quote,
    Refused,
    no_check,
)

PREFIX = "tip-"
LISTED_SECONDS = 2.0
_TYPES = {"Market": "market", "Limit": "limit", "Stop": "market", "StopLimit": "limit"}
_KEYS = {"fetch_open_orders": "open", "fetch_closed_orders": "closed"}


class Way(Protocol):
    """What an account needs of its connection."""

    @property
    def exchange(self) -> Exchange: ...

    @property
    def call_seconds(self) -> float: ...

    @property
    def endings(self) -> Endings: ...

    def object_for(self, secret: Mapping[str, str]) -> Any: ...


class CcxtAccount:
    def __init__(self, connection: Way, secret: Mapping[str, str]) -> None:
        self._connection, self._secret = connection, secret
        self._recovery = connection.exchange.recovery
        self._open_ids, self._listed_at = set[str](), -LISTED_SECONDS
        self._key_digest = hashlib.sha256(secret.get("apiKey", "").encode()).hexdigest()[:16]

    @property
    def client_ids(self) -> ClientIds:
        return self._recovery.client_ids

    @property
    def call_seconds(self) -> float:
        return self._connection.call_seconds

    def account_id(self) -> str:
        """By reading the balance, which logs in. Without another name it is a digest of the key."""
        try:
            shown = self._read(lambda ccxt: ccxt.fetch_balance()).get("info")
        except Refused:
            raise CredentialRefused from None  # it may not even read
        uid = shown.get("uid") if isinstance(shown, dict) else None
        return str(self._secret.get("account") or uid or f"key:{self._key_digest}")

    def create(self, order: NewOrder, check: Check = no_check) -> Order:
        ccxt = self._connection.object_for(self._secret)
        with understood_by(ccxt, sends=False):
            check_limits(ccxt, order)
        forget_answers(ccxt)
        written.start(check)
        with understood_by(ccxt, is_new_order=True):
            made = ccxt.create_order(
                order.symbol,
                _TYPES[order.kind],
                order.order_side.lower(),
                plain(order.quantity),
                plain(order.limit_price),
                self._terms(order),
            )
            return self._created(made, order)
        raise AssertionError  # `understood_by` never swallows without raising; this is for the type checker

    def _created(self, made: Any, order: NewOrder) -> Order:
        """Where nobody has looked into what an exchange answers, its id alone: the rest is read soon."""
        stated = made if self._connection.exchange.is_proven else {"id": made["id"]}
        return reading.read_created(stated, order, self._ours)

    def _terms(self, order: NewOrder) -> dict[str, Any]:
        terms: dict[str, Any] = self._expiry()
        if self._connection.exchange.takes_our_id:
            terms["clientOrderId"] = self._theirs(order.client_order_id)
        if order.limit_price is not None:
            terms["timeInForce"] = order.time_in_force
        if order.stop_price is not None:
            terms["stopLossPrice"] = plain(order.stop_price)
        return terms

    def _expiry(self) -> dict[str, Any]:
        """Until when the request may take effect: no longer than we wait for its answer."""
        if self._recovery.expiry == "milliseconds":
            return {"recvWindow": int(1000 * self.call_seconds)}
        if self._recovery.expiry == "deadline":
            return {"deadline": timestamp(datetime.now(UTC) + timedelta(seconds=max(2.0, self.call_seconds)))}
        return {}

    def replace(self, broker_order_id: str, change: Change, check: Check = no_check) -> Order:
        raise Refused("REPLACEMENT_NOT_POSSIBLE", "Cancel the order and create another one.")

    def cancel(self, broker_order_id: str, check: Check = no_check) -> None:
        ccxt = self._connection.object_for(self._secret)
        forget_answers(ccxt)
        written.start(check)
        order_id, symbol = reading.parts(broker_order_id)
        try:
            with understood_by(ccxt):
                ccxt.cancel_order(order_id, symbol)
        except Refused as refusal:
            if refusal.code != "ORDER_NOT_FOUND" or not self._is_answered_with(order_id, ccxt):
                raise

    def _is_answered_with(self, order_id: str, ccxt: Any) -> bool:
        """Toobit answers a cancel with the order; unless that is still open, ccxt says that it was not found."""
        if not self._connection.exchange.is_proven:
            with suppress(BaseError, *MISREAD):
                return str(ccxt.parse_order(ccxt.last_json_response)["id"]) == order_id
        return False

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        theirs = self._theirs(client_order_id)
        if self._recovery.query is Query.ORDER:
            return self._one(lambda ccxt: ccxt.fetch_order("", symbol, {"clientOrderId": theirs}))
        if self._recovery.query is Query.LISTS:
            return self._listed(client_order_id)
        raise OutcomeUnknown("cannot_be_queried")

    def _listed(self, client_order_id: str) -> Order | None:
        """By a listing of this id alone. If it lists anything else, it is not known what it leaves out."""
        for listing in _KEYS:
            rows = self._read(partial(_list, listing, self._theirs(client_order_id)))
            found = [self._shown(row) for row in rows]
            if any(order.client_order_id != client_order_id for order in found):
                raise OutcomeUnknown("listing_of_others")
            if found:
                return found[0]
        return None

    def order(self, broker_order_id: str) -> Order | None:
        if not reading.is_ours(broker_order_id):
            return None
        order = self._one(lambda ccxt: ccxt.fetch_order(*reading.parts(broker_order_id)))
        return order if self._connection.exchange.is_proven else self._believed(order, broker_order_id)

    def _believed(self, order: Order | None, broker_order_id: str) -> Order | None:
        """An end that was shown for a while, of an order that is not listed as open."""
        endings, key = self._connection.endings, self._key_digest
        shown = endings.believed(key, order) if order else endings.remembered(key, broker_order_id)
        if shown is None or shown.status in OPEN or shown.status is OrderStatus.FILLED:
            return shown
        return endings.listed(key, shown) if self._is_listed(broker_order_id) else shown

    def _is_listed(self, broker_order_id: str) -> bool:
        """By a listing that is used for all orders that have ended in the same moment."""
        if time.monotonic() - self._listed_at > LISTED_SECONDS:
            rows = self._read(lambda ccxt: ccxt.fetch_open_orders())
            with understood():
                self._open_ids = {str(row["id"]) for row in rows}
            self._listed_at = time.monotonic()
        return reading.parts(broker_order_id)[0] in self._open_ids

    def _one(self, read: Callable[[Any], Any]) -> Order | None:
        try:
            return self._shown(self._read(read, reads_one_order=True))
        except Refused as refusal:
            if refusal.code == "ORDER_NOT_FOUND":
                return None
            raise

    def open_orders(self) -> Iterable[Order]:
        rows = self._read(lambda ccxt: ccxt.fetch_open_orders())
        if self._connection.exchange.is_proven:
            return [self._shown(row) for row in rows]
        return [order for row in rows if (order := self._readable(row))]

    def _readable(self, row: Any) -> Order | None:
        """One that cannot be read is left out, lest it hides the others; if it is ours, it is read by itself."""
        with suppress(OutcomeUnknown):
            return self._connection.endings.listed(self._key_digest, self._shown(row))
        return None

    def _shown(self, row: Any) -> Order:
        return reading.read_order(row, self._ours)

    def orders(self, after: datetime) -> Iterable[Order]:
        """Open ones: few exchanges list the others without a symbol."""
        return [order for order in self.open_orders() if order.created_at >= after]

    def executions(self, after: datetime) -> Iterable[Execution]:
        return ()  # an order's own total counts

    def positions(self) -> list[Position]:
        return reading.read_positions(self._read(lambda ccxt: ccxt.fetch_balance()))

    def balance(self) -> Balance:
        return reading.read_balance(self._read(lambda ccxt: ccxt.fetch_balance()))

    def quotes(self, symbols: Sequence[str]) -> list[Quote]:
        known = [symbol for symbol in symbols if symbol in self._connection.object_for(self._secret).markets]
        if not known:
            return []
        return reading.read_quotes(self._read(lambda ccxt: ccxt.fetch_tickers(known)), known)

    def listen(
        self, on_ready: Callable[[], None], on_update: Callable[[OrderUpdate], None], stop: threading.Event
    ) -> None:
        """Never called: the description says that there is no stream."""

    def _read(self, read: Callable[[Any], Any], *, reads_one_order: bool = False) -> Any:
        ccxt = self._connection.object_for(self._secret)
        forget_answers(ccxt)
        written.start(no_check)
        with understood_by(ccxt, reads_one_order=reads_one_order):
            found = read(ccxt)
        if ccxt.last_json_response is None:  # what is no JSON is to ccxt an answer without anything in it
            raise OutcomeUnknown(BROKEN_ANSWER)
        return found

    def _theirs(self, client_order_id: str) -> str:
        return client_order_id if self._recovery.has_prefix else client_order_id.removeprefix(PREFIX)

    def _ours(self, shown: str | None) -> str:
        """What an exchange shows that does not get our id is an id of its own or the library's."""
        if shown is None or not self._connection.exchange.takes_our_id:
            return ""
        if self._recovery.has_prefix:
            return shown
        compact = shown.replace("-", "")
        return f"{PREFIX}{compact}" if len(compact) == 32 else shown


def _list(listing: str, client_order_id: str, ccxt: Any) -> Any:
    """A listing without its list would be taken for an empty one."""
    found = getattr(ccxt, listing)(params={"clientOrderId": client_order_id})
    if _KEYS[listing] not in ccxt.last_json_response["result"]:
        raise KeyError(listing)
    return found
