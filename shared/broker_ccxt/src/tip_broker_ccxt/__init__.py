"""Crypto exchanges by ccxt, at their spot markets: `ccxt:binance`, `ccxt:kraken`, `ccxt:okx` and so on.

What exchanges have is in `exchanges.json`, made from the library by `python -m tip_broker_ccxt.table`: importing it
takes seconds, which describing a broker must not. What the library does not know, and money depends on, is in
`exchanges`: how an order is found again whose answer was lost.
"""

from collections.abc import Iterator
from functools import partial

from tip_broker_ccxt.exchanges import CREDENTIALS, Exchange, read_exchanges
from tip_broker_ccxt.reading import complete_id
from tip_brokers.capabilities import Capabilities, Replacement, SymbolForm
from tip_brokers.description import BrokerDescription, BrokerSettings, Connector, CredentialField, Setting

ADDRESSES = Setting("CCXT_ADDRESSES", "other addresses of exchanges: `binance=http://gateway:8080`, by commas")
_IMMEDIATE = ("DAY", "GTC", "IOC")  # a market order is done at once: how long it may stand means nothing
ACCOUNT = CredentialField(
    "account", "Name of the account at the exchange, the same for all its keys", required=False, secret=False
)
"""Without it the exchange's own user id is the name, or else the key: then another key is another account."""
_SYMBOLS = SymbolForm(r"[A-Z0-9]+/[A-Z0-9]+", "BTC/USDT")


def brokers() -> Iterator[BrokerDescription]:
    return map(_described, read_exchanges())


def _described(exchange: Exchange) -> BrokerDescription:
    return BrokerDescription(
        name=f"ccxt:{exchange.id}",
        title=exchange.title,
        environments=("paper", "live") if exchange.sandbox else ("live",),
        credential=(*map(_field, exchange.credential), ACCOUNT),
        capabilities=_capabilities(exchange),
        connect=partial(_connect, exchange),
        settings=(ADDRESSES,),
        complete_order_id=complete_id,
    )


def _field(name: str) -> CredentialField:
    title, secret = CREDENTIALS[name]
    return CredentialField(
        name, title, longest=4096, pattern=r"[\n -~]+" if name == "secret" else r"[!-~]+", secret=secret
    )


def _capabilities(exchange: Exchange) -> Capabilities:
    kinds: dict[str, tuple[str, ...]] = {"Market": _IMMEDIATE} if exchange.market_orders else {}
    kinds |= {"Limit": exchange.times_in_force}
    if exchange.is_proven:
        kinds |= {"Stop": ("GTC",), "StopLimit": ("GTC",)}
    return Capabilities(
        exchange.recovery.client_ids,
        kinds=kinds,
        replacement=Replacement.NONE,
        quotes=True,
        fractions=True,
        symbols=_SYMBOLS,
        calls_per_minute=exchange.calls_per_minute,
    )


def _connect(exchange: Exchange, environment: str, settings: BrokerSettings) -> Connector:
    from tip_broker_ccxt.connection import Connection

    return Connection(exchange, environment, settings, _address(settings.of(ADDRESSES), exchange.id))


def _address(addresses: str, exchange_id: str) -> str | None:
    pairs = (pair.partition("=") for pair in addresses.split(","))
    return next((address.strip() for name, _, address in pairs if name.strip() == exchange_id), None)
