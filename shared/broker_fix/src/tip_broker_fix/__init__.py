"""Brokers that speak FIX 4.4.

A process of its own, the gateway (`tip_broker_fix.gateway`), owns the session with the broker. Executor and reconciler
reach it over HTTP by the adapter in `account`. Describing the broker loads neither.
"""

from tip_brokers.capabilities import Capabilities, SymbolForm
from tip_brokers.client_ids import ClientIds
from tip_brokers.description import BrokerDescription, BrokerSettings, Connector, CredentialField, Setting

PAPER_URL = Setting("FIX_PAPER_URL", "the gateways of paper accounts, by commas", "http://127.0.0.1:8083", "paper")
LIVE_URL = Setting("FIX_LIVE_URL", "the gateways of live accounts, by commas", "http://127.0.0.1:8084", "live")


def _connect(environment: str, settings: BrokerSettings) -> Connector:
    from tip_broker_fix.account import Gateways

    addresses = settings.of(LIVE_URL if environment == "live" else PAPER_URL).split(",")
    return Gateways(
        [address.strip() for address in addresses],
        connect_seconds=settings.connect_seconds,
        read_seconds=settings.read_seconds,
    )


BROKER = BrokerDescription(
    name="fix",
    title="FIX 4.4",
    credential=(
        CredentialField("account", "Account at the broker (tag 1)", longest=64, pattern=r"[!-~]+", secret=False),
        CredentialField("secret_key", "Secret key, from the operator of the gateway"),
        CredentialField(
            "destination",
            "Where orders go that are routed DIRECT (tag 100)",
            longest=64,
            pattern=r"[!-~]+",
            required=False,
            secret=False,
        ),
    ),
    capabilities=Capabilities(
        ClientIds.UNIQUE,
        streams=True,
        executions=True,
        routing=True,
        shared_exits=True,
        symbols=SymbolForm(r"[!-~]+", "AAPL"),
    ),
    connect=_connect,
    settings=(PAPER_URL, LIVE_URL),
)
