"""Ways to a broker that stands in for the paper broker."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tip_broker_alpaca import PAPER, PAPER_URL
from tip_brokers import BrokerDescription, BrokerSettings


def at(url: str, **seconds: float) -> BrokerSettings:
    """The paper broker is at this address."""
    return BrokerSettings({PAPER_URL.variable: url}, **seconds)


def connecting_to(connector: Any) -> Mapping[str, BrokerDescription]:
    """The paper broker is this object."""
    return {PAPER.name: replace(PAPER, connect=lambda _environment, _settings: connector)}
