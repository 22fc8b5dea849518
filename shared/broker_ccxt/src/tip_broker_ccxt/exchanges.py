"""What is known of exchanges without asking them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from tip_brokers.client_ids import ClientIds

TABLE = Path(__file__).with_name("exchanges.json")
CREDENTIALS = {
    "apiKey": ("API key", False),
    "secret": ("Secret", True),
    "password": ("Passphrase", True),
    "uid": ("User id", False),
}
"""The parts of a secret by ccxt's names: their titles, and whether to hide them. Who wants others is left out."""


class Query(StrEnum):
    """By which call an exchange finds an order under our id."""

    ORDER = "fetch_order"
    LISTS = "fetch_open_orders and fetch_closed_orders"


class Recovery(NamedTuple):
    """How an order is found again whose answer was lost.

    An exchange that takes one id twice must also let a request expire, or one that was held up on its way might take
    effect after the exchange has said that there is no such order.
    """

    client_ids: ClientIds
    query: Query | None = None
    expiry: str | None = None
    """The parameter of a request that bounds when it may take effect: `milliseconds` or `deadline`."""
    has_prefix: bool = True
    """Whether an id may be any text; otherwise it is a UUID in hexadecimal."""
    refusals: str | None = None
    """What in an error that ccxt does not know is the exchange's definite no."""


# From the exchanges' own documentation: ids are unique among open orders only.
RECOVERY: Mapping[str, Recovery] = {
    "binance": Recovery(ClientIds.ECHO, Query.ORDER, expiry="milliseconds"),
    "binanceus": Recovery(ClientIds.ECHO, Query.ORDER, expiry="milliseconds"),
    "kraken": Recovery(
        ClientIds.ECHO,
        Query.LISTS,
        expiry="deadline",
        has_prefix=False,
        refusals=r"\b(EOrder|EAccount|EFunding|ETrade):|EGeneral:(Invalid|Permission)|EService:Deadline elapsed",
    ),
}


UNPROVEN = Recovery(ClientIds.NONE, has_prefix=False)
"""Of every other exchange: nobody knows what it means if it does not show an order, nor what its errors mean. So
nothing is sent twice, and an operator finds out."""


def is_proven(exchange_id: str) -> bool:
    """Whether a dialect of the loopback exchange shows how it behaves, and not ccxt's unified words alone."""
    return exchange_id in RECOVERY


@dataclass(frozen=True)
class Exchange:
    id: str
    title: str
    sandbox: bool
    credential: tuple[str, ...]
    market_orders: bool
    times_in_force: tuple[str, ...]
    calls_per_minute: int | None
    takes_our_id: bool
    """Whether it gets our id as its own field for it, and shows orders with it."""

    @property
    def recovery(self) -> Recovery:
        return RECOVERY.get(self.id, UNPROVEN)

    @property
    def is_proven(self) -> bool:
        return is_proven(self.id)


def read_exchanges() -> Iterator[Exchange]:
    return map(_exchange, json.loads(TABLE.read_text()))


def _exchange(row: Mapping[str, Any]) -> Exchange:
    return Exchange(**{**row, "credential": tuple(row["credential"]), "times_in_force": tuple(row["times_in_force"])})
