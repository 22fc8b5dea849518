"""What ccxt knows of its exchanges, as `exchanges.json`: `python -m tip_broker_ccxt.table > exchanges.json`."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import ccxt

from tip_broker_ccxt.exchanges import is_proven
from tip_broker_ccxt.left_out import required, why_left_out
from tip_broker_ccxt.probing import is_same_house, lacking, takes_our_id

OURS = ("GTC", "IOC", "FOK")


def rows() -> Iterator[dict[str, Any]]:
    """Of the exchanges that have what an adapter needs."""
    for name in ccxt.exchanges:
        exchange = getattr(ccxt, name)()
        if why_left_out(exchange) is None:
            yield _row(exchange)


def _row(exchange: Any) -> dict[str, Any]:
    """Where nobody has seen what a market order or another time in force does, there are none."""
    spot = (exchange.features or {}).get("spot") or {}
    times = (spot.get("createOrder") or {}).get("timeInForce") or {}
    known = is_proven(exchange.id)
    return {
        "id": exchange.id,
        "title": exchange.name,
        "sandbox": bool(exchange.urls.get("test")) and (known or _has_sandbox(exchange.id)),
        "credential": required(exchange),
        "market_orders": known and exchange.has.get("createMarketOrder") is True,
        "times_in_force": [time for time in OURS if time == "GTC" or (known and times.get(time))],
        "calls_per_minute": int(60_000 / exchange.rateLimit) if exchange.rateLimit else None,
        "takes_our_id": known or takes_our_id(exchange.id),
    }


def _has_sandbox(name: str) -> bool:
    return is_same_house(name) and lacking(name, in_sandbox=True) is None


def table() -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows()) + "\n]\n"


if __name__ == "__main__":
    sys.stdout.write(table())
