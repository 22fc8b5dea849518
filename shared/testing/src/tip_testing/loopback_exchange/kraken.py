"""Kraken's spot API, as far as an account needs it."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from tip_testing.loopback_exchange.book import COINS, LEAST, LEAST_VALUE, PRICE, SECRET, Book, Order, Refusal

QUOTE = "USD"
ERRORS = {
    "duplicate": "EOrder:Duplicate cl_ord_id",
    "funds": "EOrder:Insufficient funds",
    "absent": "EOrder:Unknown order",
    "expired": "EService:Deadline elapsed",
    "key": "EAPI:Invalid key",
    "many": "EOrder:Orders limit exceeded",
    "limit": "EAPI:Rate limit exceeded",
}
STATUSES = {"open": "open", "filled": "closed", "canceled": "canceled", "expired": "expired"}
KINDS = {"market": "market", "limit": "limit", "stop-loss": "stop-loss", "stop-loss-limit": "stop-loss-limit"}


def answer(book: Book, _method: str, path: str, query: str, body: str, headers: Any) -> tuple[int, Any]:
    try:
        return 200, {"error": [], "result": _answer(book, path, query, body, headers)}
    except Refusal as refusal:
        return 200, {"error": [ERRORS[refusal.kind]]}


def _answer(book: Book, path: str, query: str, body: str, headers: Any) -> Any:
    match path:
        case "/0/public/AssetPairs":
            return {f"{coin}{QUOTE}": _pair(coin) for coin in COINS}
        case "/0/public/Assets":
            return {coin: _asset(coin) for coin in (*COINS, QUOTE)}
        case "/0/public/Ticker":
            return {pair: _ticker() for pair in dict(parse_qsl(query))["pair"].split(",")}
    values = dict(parse_qsl(body))
    _check(book, path, values, body, headers)
    match path.removeprefix("/0/private/"):
        case "Balance" | "BalanceEx":
            held = {coin: {"balance": str(book.held(coin)), "hold_trade": "0"} for coin in COINS}
            return {QUOTE: {"balance": "100000", "hold_trade": "0"}, **held}
        case "AddOrder":
            return _created(book, values)
        case "CancelOrder":
            book.cancel(_number(values["txid"]))
            return {"count": 1}
        case "QueryOrders":
            order = book.by_id(_number(values["txid"]))
            return {_name(order): _shown(order)}
        case "OpenOrders":
            return {"open": _listed(book, values, is_open=True)}
        case "ClosedOrders":
            closed = _listed(book, values, is_open=False)
            return {"closed": closed, "count": len(closed)}
    raise Refusal("absent")


def _check(book: Book, path: str, values: dict[str, str], body: str, headers: Any) -> None:
    digest = hashlib.sha256((values.get("nonce", "") + body).encode()).digest()
    made = hmac.new(base64.b64decode(SECRET), path.encode() + digest, hashlib.sha512).digest()
    if headers.get("API-Key") != book.key or headers.get("API-Sign") != base64.b64encode(made).decode():
        raise Refusal("key")
    if "deadline" in values and datetime.fromisoformat(values["deadline"]) < datetime.now(UTC):
        raise Refusal("expired")


def _created(book: Book, values: dict[str, str]) -> Any:
    kind = values["ordertype"]
    prices = [Decimal(values[name]) if name in values else None for name in ("price", "price2")]
    limit_price, stop_price = {
        "market": (None, None),
        "limit": (prices[0], None),
        "stop-loss": (None, prices[0]),
        "stop-loss-limit": (prices[1], prices[0]),
    }[kind]
    order = book.create(
        values["cl_ord_id"],
        values["pair"].removesuffix(QUOTE),
        values["type"].upper(),
        kind,
        quantity=Decimal(values["volume"]),
        limit_price=limit_price,
        stop_price=stop_price,
        time_in_force=values.get("timeinforce", "GTC"),
    )
    described = f"{values['type']} {values['volume']} {values['pair']} @ {_sentence(order)}"
    return {"descr": {"order": described}, "txid": [_name(order)]}


def _sentence(order: Order) -> str:
    if order.stop_price is None:
        return "market" if order.limit_price is None else f"limit {order.limit_price}"
    return f"stop loss {order.stop_price}" + (f" -> limit {order.limit_price}" if order.limit_price else "")


def _listed(book: Book, values: dict[str, str], *, is_open: bool) -> dict[str, Any]:
    chosen = [order for order in book.orders if (order.status == "open") is is_open]
    if wanted := values.get("cl_ord_id"):
        chosen = [order for order in chosen if order.client_id == wanted]
    return {_name(order): _shown(order) for order in reversed(chosen)}


def _name(order: Order) -> str:
    return f"OTIP{order.id:05}"


def _number(txid: str) -> int:
    return int(txid.removeprefix("OTIP")) if txid.removeprefix("OTIP").isdigit() else 0


def _shown(order: Order) -> dict[str, Any]:
    ended = {} if order.status == "open" else {"closetm": order.changed}
    return {
        "refid": None,
        "userref": None,
        "cl_ord_id": order.client_id,
        "status": STATUSES[order.status],
        "opentm": order.created,
        "starttm": 0,
        "expiretm": 0,
        "descr": {
            "pair": order.coin + QUOTE,
            "type": order.side.lower(),
            "ordertype": KINDS[order.kind],
            "price": str(order.stop_price or order.limit_price or 0),
            "price2": str(order.limit_price or 0) if order.stop_price else "0",
            "leverage": "none",
            "order": "",
            "close": "",
        },
        "vol": str(order.quantity),
        "vol_exec": str(order.filled),
        "cost": str(order.filled * PRICE),
        "fee": "0",
        "price": str(order.average),
        "stopprice": "0",
        "limitprice": "0",
        "misc": "",
        "oflags": "fciq",
        **ended,
    }


def _pair(coin: str) -> dict[str, Any]:
    return {
        "altname": f"{coin}{QUOTE}",
        "wsname": f"{coin}/{QUOTE}",
        "aclass_base": "currency",
        "base": coin,
        "aclass_quote": "currency",
        "quote": QUOTE,
        "lot": "unit",
        "pair_decimals": 2,
        "lot_decimals": 3,
        "cost_decimals": 5,
        "lot_multiplier": 1,
        "leverage_buy": [],
        "leverage_sell": [],
        "fees": [[0, 0.26]],
        "fees_maker": [[0, 0.16]],
        "ordermin": str(LEAST),
        "costmin": str(LEAST_VALUE),
        "tick_size": "0.01",
        "status": "online",
    }


def _asset(coin: str) -> dict[str, Any]:
    return {"aclass": "currency", "altname": coin, "decimals": 8, "display_decimals": 5, "status": "enabled"}


def _ticker() -> dict[str, Any]:
    day = ["1", "1"]
    return {
        "a": ["20.01", "1", "1"], "b": ["19.99", "1", "1"], "c": [str(PRICE), "1"], "v": day, "p": day,
        "t": [1, 1], "l": day, "h": day, "o": "20",
    }  # fmt: skip
