"""OKX's spot API, as far as an account needs it."""

import base64
import hashlib
import hmac
import json
import time
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from tip_testing.loopback_exchange.book import COINS, LEAST, PRICE, SECRET, STEP, Book, Order, Refusal

QUOTE = "USDT"
ERRORS = {
    "duplicate": ("51016", "Duplicated client order ID."),
    "funds": ("51008", "Order failed. Insufficient USDT balance in account."),
    "absent": ("51603", "Order does not exist."),
    "canceled": ("51400", "Cancellation failed as the order has been filled, canceled or does not exist."),
    "key": ("50113", "Invalid Sign"),
    "many": ("51000", "Parameter sz error"),
    "limit": ("50011", "Too Many Requests"),
}
STATUSES = {"open": "live", "filled": "filled", "canceled": "canceled", "expired": "canceled"}


def answer(book: Book, method: str, path: str, query: str, body: str, headers: Any) -> tuple[int, Any]:
    try:
        found = _answer(book, method, path, query, body, headers)
        return 200, {"code": "0", "msg": "", "data": found}
    except Refusal as refusal:
        code, message = ERRORS[refusal.kind]
        if method == "GET" or refusal.kind in ("key", "limit"):
            return 429 if refusal.kind == "limit" else 200, {"code": code, "msg": message, "data": []}
        return 200, {"code": "1", "msg": "All operations failed", "data": [{"sCode": code, "sMsg": message}]}


def _answer(book: Book, method: str, path: str, query: str, body: str, headers: Any) -> list[Any]:
    match path.removeprefix("/api/v5"):
        case "/public/instruments":
            return [_instrument(coin) for coin in COINS]
        case "/market/tickers":
            return [_ticker(coin) for coin in COINS]
    _check(book, method, f"{path}?{query}" if query else path, body, headers)
    match path.removeprefix("/api/v5"):
        case "/account/balance":
            return [_balance(book)]
        case "/trade/batch-orders":
            [order] = json.loads(body)
            return [_created(book, order)]
        case "/trade/cancel-order":
            return [_canceled(book, json.loads(body))]
        case "/trade/order":
            return [_shown(book.by_id(int(dict(parse_qsl(query))["ordId"])))]
        case "/trade/orders-pending":
            return [_shown(order) for order in book.orders if order.status == "open"]
    raise Refusal("absent")


def _check(book: Book, method: str, address: str, body: str, headers: Any) -> None:
    signed = f"{headers.get('OK-ACCESS-TIMESTAMP')}{method}{address}{body}"
    made = base64.b64encode(hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).digest()).decode()
    if headers.get("OK-ACCESS-KEY") != book.key or headers.get("OK-ACCESS-SIGN") != made:
        raise Refusal("key")


def _created(book: Book, values: dict[str, str]) -> dict[str, Any]:
    order = book.create(
        values["clOrdId"],
        values["instId"].removesuffix(f"-{QUOTE}"),
        values["side"].upper(),
        values["ordType"],
        quantity=Decimal(values["sz"]),
        limit_price=Decimal(values["px"]),
        stop_price=None,
        time_in_force="GTC",
    )
    return {"ordId": str(order.id), "clOrdId": order.client_id, "tag": "", "sCode": "0", "sMsg": ""}


def _canceled(book: Book, values: dict[str, str]) -> dict[str, Any]:
    try:
        order = book.cancel(int(values["ordId"]))
    except Refusal:
        raise Refusal("canceled") from None
    return {"ordId": str(order.id), "clOrdId": order.client_id, "sCode": "0", "sMsg": ""}


def _shown(order: Order) -> dict[str, Any]:
    is_partial = order.status == "open" and order.filled
    return {
        "instType": "SPOT",
        "instId": f"{order.coin}-{QUOTE}",
        "ordId": str(order.id),
        "clOrdId": order.client_id,
        "tdMode": "cash",
        "ordType": order.kind,
        "side": order.side.lower(),
        "px": str(order.limit_price),
        "sz": str(order.quantity),
        "accFillSz": str(order.filled),
        "avgPx": str(order.average) if order.filled else "",
        "state": "partially_filled" if is_partial else STATUSES[order.status],
        "fee": "0",
        "feeCcy": QUOTE,
        "cTime": str(int(order.created * 1000)),
        "uTime": str(int(order.changed * 1000)),
    }


def _balance(book: Book) -> dict[str, Any]:
    held = {QUOTE: Decimal(100000), **{coin: book.held(coin) for coin in COINS}}
    details = [
        {"ccy": coin, "eq": str(total), "cashBal": str(total), "availBal": str(total), "frozenBal": "0"}
        for coin, total in held.items()
    ]
    return {"uTime": _now(), "totalEq": "100000", "details": details}


def _instrument(coin: str) -> dict[str, Any]:
    return {
        "instType": "SPOT",
        "instId": f"{coin}-{QUOTE}",
        "baseCcy": coin,
        "quoteCcy": QUOTE,
        "tickSz": "0.01",
        "lotSz": str(STEP),
        "minSz": str(LEAST),
        "state": "live",
    }


def _ticker(coin: str) -> dict[str, Any]:
    prices = {"last": str(PRICE), "bidPx": "19.99", "askPx": "20.01"}
    return {"instType": "SPOT", "instId": f"{coin}-{QUOTE}", **prices, "ts": _now()}


def _now() -> str:
    return str(int(time.time() * 1000))
