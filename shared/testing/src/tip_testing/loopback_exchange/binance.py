"""Binance's spot API, as far as an account needs it."""

import hashlib
import hmac
import json
import time
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from tip_testing.loopback_exchange.book import (
    COINS,
    LEAST,
    LEAST_VALUE,
    PRICE,
    SECRET,
    STEP,
    Book,
    Order,
    Refusal,
)

QUOTE = "USDT"
ERRORS = {
    "duplicate": (400, -2010, "Duplicate order sent."),
    "funds": (400, -2010, "Account has insufficient balance for requested action."),
    "absent": (400, -2013, "Order does not exist."),
    "unknown": (400, -2011, "Unknown order sent."),
    "expired": (400, -1021, "Timestamp for this request is outside of the recvWindow."),
    "key": (401, -2015, "Invalid API-key, IP, or permissions for action."),
    "unrequired": (400, -1106, "Parameter 'timeInForce' sent when not required."),
    "many": (400, -2010, "Too many new orders."),
    "limit": (429, -1003, "Too many requests."),
}
STATUSES = {"open": "NEW", "filled": "FILLED", "canceled": "CANCELED", "expired": "EXPIRED"}


def error(kind: str) -> tuple[int, Any]:
    status, code, message = ERRORS[kind]
    return status, {"code": code, "msg": message}


def answer(book: Book, method: str, path: str, query: str, body: str, headers: Any) -> tuple[int, Any]:
    try:
        return _answer(book, method, path, query if method != "POST" else body or query, headers)
    except Refusal as refusal:
        return error("unknown" if refusal.kind == "absent" and method == "DELETE" else refusal.kind)


def _answer(book: Book, method: str, path: str, query: str, headers: Any) -> tuple[int, Any]:
    values = dict(parse_qsl(query))
    match method, path.removeprefix("/api/v3"):
        case "GET", "/exchangeInfo":
            return 200, {"timezone": "UTC", "serverTime": _now(), "symbols": [_symbol(coin) for coin in COINS]}
        case "GET", "/ticker/24hr":
            return 200, [_ticker(symbol) for symbol in json.loads(values["symbols"])]
        case "GET", "/time":
            return 200, {"serverTime": _now()}
    _check(book, query, values, headers)
    match method, path.removeprefix("/api/v3"):
        case "GET", "/account":
            return 200, _account(book)
        case "POST", "/order":
            return 200, _created(book, values)
        case "GET", "/order":
            return 200, _shown(_found(book, values))
        case "DELETE", "/order":
            return 200, _shown(book.cancel(int(values["orderId"])))
        case "GET", "/openOrders":
            return 200, [_shown(order) for order in book.orders if order.status == "open"]
    return 404, {"code": -1, "msg": path}


def _check(book: Book, query: str, values: dict[str, str], headers: Any) -> None:
    signed, _, signature = query.rpartition("&signature=")
    expected = hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).hexdigest()
    if headers.get("X-MBX-APIKEY") != book.key or signature != expected:
        raise Refusal("key")
    if _now() - int(values["timestamp"]) > int(values.get("recvWindow", 5000)):
        raise Refusal("expired")


def _created(book: Book, values: dict[str, str]) -> Any:
    if "timeInForce" in values and values["type"] in ("MARKET", "STOP_LOSS"):
        raise Refusal("unrequired")
    order = book.create(
        values["newClientOrderId"],
        values["symbol"].removesuffix(QUOTE),
        values["side"],
        values["type"],
        quantity=Decimal(values["quantity"]),
        limit_price=Decimal(values["price"]) if "price" in values else None,
        stop_price=Decimal(values["stopPrice"]) if "stopPrice" in values else None,
        time_in_force=values.get("timeInForce", "GTC"),
    )
    shown = _shown(order)
    fills = [{"price": str(PRICE), "qty": str(order.filled), "commission": "0", "commissionAsset": QUOTE, "tradeId": 1}]
    return {**shown, "transactTime": shown["time"], "fills": fills if order.filled else []}


def _found(book: Book, values: dict[str, str]) -> Order:
    if "origClientOrderId" in values:
        return book.by_client_id(values["origClientOrderId"])
    return book.by_id(int(values["orderId"]))


def _shown(order: Order) -> dict[str, Any]:
    partial = order.status == "open" and order.filled
    return {
        "symbol": order.coin + QUOTE,
        "orderId": order.id,
        "orderListId": -1,
        "clientOrderId": order.client_id,
        "price": str(order.limit_price or 0),
        "origQty": str(order.quantity),
        "executedQty": str(order.filled),
        "cummulativeQuoteQty": str(order.filled * PRICE),
        "status": "PARTIALLY_FILLED" if partial else STATUSES[order.status],
        "timeInForce": order.time_in_force,
        "type": order.kind,
        "side": order.side,
        "stopPrice": str(order.stop_price or 0),
        "time": int(order.created * 1000),
        "updateTime": int(order.changed * 1000),
        "isWorking": True,
    }


def _account(book: Book) -> dict[str, Any]:
    coins = [{"asset": coin, "free": str(book.held(coin)), "locked": "0"} for coin in COINS]
    money = {"asset": QUOTE, "free": "100000", "locked": "0"}
    return {"uid": book.uid, "canTrade": True, "accountType": "SPOT", "updateTime": _now(), "balances": [money, *coins]}


def _symbol(coin: str) -> dict[str, Any]:
    return {
        "symbol": coin + QUOTE,
        "status": "TRADING",
        "baseAsset": coin,
        "baseAssetPrecision": 8,
        "quoteAsset": QUOTE,
        "quotePrecision": 8,
        "quoteAssetPrecision": 8,
        "orderTypes": ["LIMIT", "LIMIT_MAKER", "MARKET", "STOP_LOSS", "STOP_LOSS_LIMIT"],
        "isSpotTradingAllowed": True,
        "isMarginTradingAllowed": False,
        "permissions": ["SPOT"],
        "permissionSets": [["SPOT"]],
        "filters": [
            {"filterType": "PRICE_FILTER", "minPrice": "0.01", "maxPrice": "1000000", "tickSize": "0.01"},
            {"filterType": "LOT_SIZE", "minQty": str(LEAST), "maxQty": "9000", "stepSize": str(STEP)},
            {"filterType": "NOTIONAL", "minNotional": str(LEAST_VALUE), "maxNotional": "9000000"},
        ],
    }


def _ticker(symbol: str) -> dict[str, Any]:
    prices = {"bidPrice": "19.99", "askPrice": "20.01", "lastPrice": str(PRICE)}
    return {"symbol": symbol, **prices, "closeTime": _now(), "openTime": _now() - 86_400_000}


def _now() -> int:
    return int(time.time() * 1000)
