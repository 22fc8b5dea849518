"""The published kit, run by the Alpaca adapter against the paper broker's process."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from intents.brokers import Broker
from intents.brokers.alpaca import Connection
from intents.brokers.conformance import Conformance


@dataclass
class PaperMarket:
    broker: Broker
    stranger: Broker | None
    resting: str = "SIM.OPEN"
    filling: str = "CONFORM"
    halving: str | None = "SIM.PARTIAL50"
    refusing: str | None = "SIM.REJECT"
    silent: str | None = "SIM.TIMEOUT_AFTER_ACCEPT"
    doubling: str | None = "SIM.DUPLICATE_EVENT"
    late: str | None = "SIM.LATE_FILL"


class TestAlpacaAtThePaperBroker(Conformance):
    @pytest.fixture
    def market(self, paper: Any) -> PaperMarket:
        paper.quote("CONFORM", "9", "10")
        connection = Connection(paper.url, connect_seconds=1, read_seconds=2.5)
        account = connection.account({"key_id": uuid4().hex, "secret_key": "mine"})
        stranger = connection.account({"key_id": "INVALID", "secret_key": "none"})
        return PaperMarket(account, stranger)
