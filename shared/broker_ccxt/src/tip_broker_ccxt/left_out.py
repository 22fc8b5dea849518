"""Why an exchange is not offered, and LEFT-OUT.md, which says so of each: `python -m tip_broker_ccxt.left_out`."""

import sys
from typing import Any

import ccxt

from tip_broker_ccxt.exchanges import CREDENTIALS, is_proven
from tip_broker_ccxt.probing import lacking

NEEDED = (
    "createOrder",
    "createLimitOrder",
    "cancelOrder",
    "fetchOrder",
    "fetchOpenOrders",
    "fetchBalance",
    "fetchTickers",
)
KNOWN = {
    "alpaca": "has an adapter of its own",
    "coinbaseexchange": "an order that was canceled cannot be read any more",
}
HEAD = """# Exchanges of ccxt that are not offered

Made by `python -m tip_broker_ccxt.left_out` from the library, whose requests it looks at without sending them, and from
what is known of an exchange otherwise; a test fails when this file and it differ. The others are in
[docs/brokers.md](../../docs/brokers.md).

| exchange | why |
|---|---|
"""


def why_left_out(exchange: Any) -> str | None:
    """The first reason, or None of an exchange that is offered."""
    if is_proven(exchange.id):
        return None
    return _lacking_by_its_words(exchange) or lacking(exchange.id)


def _lacking_by_its_words(exchange: Any) -> str | None:
    if exchange.id in KNOWN:
        return KNOWN[exchange.id]
    if exchange.has.get("spot") is not True:
        return "trades no spot"
    wanted = required(exchange)
    if "apiKey" not in wanted or not set(wanted) <= CREDENTIALS.keys():
        return f"needs other credentials than an API key: {', '.join(wanted)}"
    absent = [call for call in NEEDED if exchange.has.get(call) is not True]
    return f"ccxt has no {absent[0]} there" if absent else None


def required(exchange: Any) -> list[str]:
    return [part for part, is_required in exchange.requiredCredentials.items() if is_required]


def document() -> str:
    made = (getattr(ccxt, name)() for name in ccxt.exchanges)
    reasons = ((exchange, why_left_out(exchange)) for exchange in made)
    return HEAD + "".join(f"| {exchange.name} (`{exchange.id}`) | {why} |\n" for exchange, why in reasons if why)


if __name__ == "__main__":
    sys.stdout.write(document())
