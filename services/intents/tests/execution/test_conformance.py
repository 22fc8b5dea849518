"""The published kit, run by the Alpaca adapter against the paper broker's process."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from tip_broker_alpaca import PAPER
from tip_broker_alpaca.account import Connection
from tip_brokers import Broker
from tip_testing.broker_conformance import Conformance
from tip_testing.broker_simulators.alpaca_pages import FULL_PAGES, short_listings


def _at(address: str) -> Broker:
    return Connection(address, connect_seconds=5, read_seconds=2).account({"key_id": "k", "secret_key": "s"})


@dataclass
class PaperMarket:
    can = PAPER.capabilities
    broker: Broker
    stranger: Broker | None
    resting: str = "SIM.OPEN"
    filling: str = "CONFORM"
    halving: str | None = "SIM.PARTIAL50"
    refusing: str | None = "SIM.REJECT"
    silent: str | None = "SIM.TIMEOUT_AFTER_ACCEPT"
    doubling: str | None = "SIM.DUPLICATE_EVENT"
    late: str | None = "SIM.LATE_FILL"
    at: Callable[[str], Broker] | None = _at
    full_pages: Mapping[str, Callable[[int], bytes]] = field(default_factory=lambda: FULL_PAGES)


class TestAlpacaAtThePaperBroker(Conformance):
    @pytest.fixture
    def market(self, paper: Any) -> Iterator[PaperMarket]:
        paper.quote("CONFORM", "9", "10")
        connection = Connection(paper.url, connect_seconds=1, read_seconds=2.5)
        ours = connection.account({"key_id": uuid4().hex, "secret_key": "mine"})
        stranger = connection.account({"key_id": "INVALID", "secret_key": "none"})
        with short_listings():
            yield PaperMarket(ours, stranger)
