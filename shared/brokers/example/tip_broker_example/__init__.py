"""An imaginary broker, as small as one can be: whole shares, two kinds of orders, no stream, no replacements."""

from tip_brokers import (
    BrokerDescription,
    BrokerSettings,
    Capabilities,
    ClientIds,
    Connector,
    CredentialField,
    Replacement,
    Setting,
    SymbolForm,
)

ADDRESS = Setting("EXAMPLE_BROKER_URL", "where the example broker is", "https://broker.example")


def _connect(_environment: str, settings: BrokerSettings) -> Connector:
    from tip_broker_example.adapter import Connection  # here, so that describing the broker loads nothing else

    return Connection(settings.of(ADDRESS), settings)


BROKER = BrokerDescription(
    name="example",
    title="Example",
    environments=("paper",),
    credential=(
        CredentialField("login", "Login", longest=32, secret=False),
        CredentialField("token", "Access token", longest=64),
    ),
    capabilities=Capabilities(
        ClientIds.UNIQUE,
        kinds={"Market": ("DAY",), "Limit": ("DAY", "GTC")},
        replacement=Replacement.NONE,
        symbols=SymbolForm(r"[A-Z]{1,5}", "AAPL"),
        calls_per_minute=600,
    ),
    connect=_connect,
    settings=(ADDRESS,),
)
