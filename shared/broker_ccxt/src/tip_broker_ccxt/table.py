"""What ccxt knows of its exchanges, as `exchanges.json`: `python -m tip_broker_ccxt.table > exchanges.json`."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import ccxt

from tip_broker_ccxt.exchanges import CREDENTIALS, RECOVERY

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


def rows() -> Iterator[dict[str, Any]]:
    """Of the exchanges of which it is known what a lost answer means, and that have what an adapter needs."""
    for name in RECOVERY:
        exchange = getattr(ccxt, name)()
        wanted = [part for part, required in exchange.requiredCredentials.items() if required]
        if all(exchange.has.get(call) is True for call in NEEDED) and set(wanted) <= CREDENTIALS.keys():
            yield _row(exchange, wanted)


def _row(exchange: Any, wanted: list[str]) -> dict[str, Any]:
    spot = (exchange.features or {}).get("spot") or {}
    times = (spot.get("createOrder") or {}).get("timeInForce") or {}
    return {
        "id": exchange.id,
        "title": exchange.name,
        "sandbox": bool(exchange.urls.get("test")),
        "credential": wanted,
        "market_orders": exchange.has.get("createMarketOrder") is True,
        "times_in_force": [time for time in OURS if time == "GTC" or times.get(time)],
        "calls_per_minute": int(60_000 / exchange.rateLimit) if exchange.rateLimit else None,
    }


def table() -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows()) + "\n]\n"


if __name__ == "__main__":
    sys.stdout.write(table())
