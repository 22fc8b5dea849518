"""Alpaca's trading API, and whatever else speaks it: the platform's paper broker does.

The official SDK sets no time-outs, retries by sleeping and brings pandas; so this is `requests` with every time-out set
and no retry at all.
"""

from tip_brokers.capabilities import DAY, GTC, PLATFORM_KINDS, Capabilities, SymbolForm
from tip_brokers.client_ids import ClientIds
from tip_brokers.description import BrokerDescription, BrokerSettings, Connector, CredentialField, Setting

PAPER_URL = Setting("PAPER_BROKER_URL", "the platform's own paper broker", "http://127.0.0.1:8081")
ALPACA_PAPER_URL = Setting("ALPACA_PAPER_URL", "Alpaca for paper accounts", "https://paper-api.alpaca.markets", "paper")
ALPACA_LIVE_URL = Setting("ALPACA_LIVE_URL", "Alpaca for live accounts", "https://api.alpaca.markets", "live")
ALPACA_DATA_URL = Setting("ALPACA_DATA_URL", "Alpaca's market data", "https://data.alpaca.markets")
NO_COINS = r"[^/]+"
KEY_PAIR = (CredentialField("key_id", "Key id", secret=False), CredentialField("secret_key", "Secret key"))


def _connect_paper(_environment: str, settings: BrokerSettings) -> Connector:
    return _connection(settings.of(PAPER_URL), settings.of(PAPER_URL), settings)


def _connect_alpaca(environment: str, settings: BrokerSettings) -> Connector:
    address = ALPACA_LIVE_URL if environment == "live" else ALPACA_PAPER_URL
    return _connection(settings.of(address), settings.of(ALPACA_DATA_URL), settings)


def _connection(address: str, data_address: str, settings: BrokerSettings) -> Connector:
    from tip_broker_alpaca.account import Connection

    return Connection(
        address, data_address, connect_seconds=settings.connect_seconds, read_seconds=settings.read_seconds
    )


PAPER = BrokerDescription(
    name="paper",
    title="Paper broker",
    credential=KEY_PAIR,
    capabilities=Capabilities(
        ClientIds.UNIQUE,
        kinds=PLATFORM_KINDS,
        streams=True,
        quotes=True,
        executions=True,
        fractions=True,
        notional_orders=(DAY,),
        extended_hours={"Limit": (DAY,)},
        exit_pairs=(DAY, GTC),
        routing=True,
        symbols=SymbolForm(exit_pairs=NO_COINS),
    ),
    connect=_connect_paper,
    settings=(PAPER_URL,),
    needs_credential=False,
    is_simulated=True,
)
ALPACA = BrokerDescription(
    name="alpaca",
    title="Alpaca",
    credential=KEY_PAIR,
    capabilities=Capabilities(
        ClientIds.UNIQUE,
        kinds=PLATFORM_KINDS,
        streams=True,
        quotes=True,
        executions=True,
        fractions=True,
        notional_orders=(DAY,),
        extended_hours={"Limit": (DAY,)},
        exit_pairs=(DAY, GTC),
        symbols=SymbolForm(r"[A-Z0-9._]+(/[A-Z0-9]+)?", "AAPL or BTC/USD", NO_COINS),
        calls_per_minute=200,
    ),
    connect=_connect_alpaca,
    settings=(ALPACA_PAPER_URL, ALPACA_LIVE_URL, ALPACA_DATA_URL),
)
