"""What ccxt knows of its exchanges, as `exchanges.json`: `python -m tip_broker_ccxt.table > exchanges.json`."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import ccxt

from tip_broker_ccxt.exchanges import CREDENTIALS, is_proven
from tip_broker_ccxt.probing import is_same_house, is_tradable

NEEDED = (
    "createOrder",
    "createLimitOrder",
    "cancelOrder",
    "fetchOrder",
    "fetchOpenOrders",
    "fetchBalance",
    "fetchTickers",
    "spot",
)
OURS = ("GTC", "IOC", "FOK")
OWN_ADAPTER = ("alpaca",)


def rows() -> Iterator[dict[str, Any]]:
    """Of the exchanges that have what an adapter needs."""
    for name in ccxt.exchanges:
        exchange = getattr(ccxt, name)()
        wanted = [part for part, required in exchange.requiredCredentials.items() if required]
        if is_proven(name) or (name not in OWN_ADAPTER and _is_enough(exchange, wanted)):
            yield _row(exchange, wanted)


def _is_enough(exchange: Any, wanted: list[str]) -> bool:
    is_signed_with_key = "apiKey" in wanted and set(wanted) <= CREDENTIALS.keys()
    has_all_calls = all(exchange.has.get(call) is True for call in NEEDED)
    return is_signed_with_key and has_all_calls and is_tradable(exchange.id)


def _row(exchange: Any, wanted: list[str]) -> dict[str, Any]:
    """Where nobody has seen what a market order or another time in force does, there are none."""
    spot = (exchange.features or {}).get("spot") or {}
    times = (spot.get("createOrder") or {}).get("timeInForce") or {}
    known = is_proven(exchange.id)
    return {
        "id": exchange.id,
        "title": exchange.name,
        "sandbox": bool(exchange.urls.get("test")) and (known or _has_sandbox(exchange.id)),
        "credential": wanted,
        "market_orders": known and exchange.has.get("createMarketOrder") is True,
        "times_in_force": [time for time in OURS if time == "GTC" or (known and times.get(time))],
        "calls_per_minute": int(60_000 / exchange.rateLimit) if exchange.rateLimit else None,
    }


def _has_sandbox(name: str) -> bool:
    return is_same_house(name) and is_tradable(name, in_sandbox=True)


def table() -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows()) + "\n]\n"


if __name__ == "__main__":
    sys.stdout.write(table())
