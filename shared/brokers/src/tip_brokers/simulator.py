"""A broker's simulator: an entry point in the group `tip.broker_simulators`, under the name of the broker's plug-in.

    [project.entry-points."tip.broker_simulators"]
    acme = "acme_for_tip.simulator:simulator"     # a `StartSimulator`

Only `tip broker check` loads it: a simulator may import what no process of the platform needs.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.metadata import entry_points

from tip_brokers.description import BrokerDescription
from tip_brokers.protocol import Broker

GROUP = "tip.broker_simulators"


class NoSimulator(Exception):
    """There is none for this broker, and why."""


@dataclass(frozen=True)
class Simulator:
    """A broker on loopback, and symbols there that behave as named. The facts about a symbol of None are skipped."""

    settings: Mapping[str, str]
    """The variables of the broker's own settings that lead to it."""
    secret: Mapping[str, str]
    """What opens an account there that nobody else uses."""
    resting: str
    """Accepts orders and fills nothing."""
    filling: str
    """Fills a market order at once, at a price between 1 and 1000."""
    unknown_secret: Mapping[str, str] | None = None
    """What opens no account there."""
    halving: str | None = None
    """Fills half of a market order at once and leaves the rest open."""
    refusing: str | None = None
    """Refuses orders."""
    silent: str | None = None
    """Does what is requested and never answers."""
    doubling: str | None = None
    """Sends every update twice."""
    late: str | None = None
    """Fills an order only after its cancel was taken in."""
    at: Callable[[str], Broker] | None = None
    """The adapter at another HTTP address; None if it does not speak HTTP."""
    full_pages: Mapping[str, Callable[[int], bytes]] = field(default_factory=dict)
    """Of listings that have pages (`open_orders`, `orders`, `executions`): the body of the nth; there is another."""
    went_direct: Callable[[str], bool] | None = None
    """Whether the order with this client order id went where its account says; None if the simulator cannot see it."""
    move: Callable[[Decimal], str] | None = None
    """Sets the price of a symbol and gives the symbol; None if prices cannot be set."""
    read_seconds: float = 2.5


StartSimulator = Callable[[BrokerDescription], AbstractContextManager[Simulator]]
"""Runs for as long as the context does. Of a family of brokers the description says which one is meant."""


def find_simulator(broker: str) -> StartSimulator:
    plugin = broker.partition(":")[0]
    found = entry_points(group=GROUP, name=plugin)
    if not found:
        raise NoSimulator(f"no installed package has an entry point {plugin} in the group {GROUP}")
    start: StartSimulator = next(iter(found)).load()
    return start
