"""The ways to brokers that one process has open."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from tip_brokers.capabilities import Capabilities
from tip_brokers.description import BrokerDescription, BrokerSettings, Connector
from tip_brokers.protocol import Broker
from tip_brokers.registry import UnknownBroker, installed


@dataclass
class Brokers:
    """One connector for each broker and environment, made when first needed."""

    settings: BrokerSettings
    described: Mapping[str, BrokerDescription] = field(default_factory=installed)
    _open: dict[tuple[str, str], Connector] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def account(self, broker: str, environment: str, secret: Mapping[str, str]) -> Broker:
        return self._connector(broker, environment).account(secret)

    def capabilities(self, broker: str) -> Capabilities | None:
        """None if no broker of this name is installed."""
        found = self.described.get(broker)
        return found.capabilities if found else None

    def _connector(self, broker: str, environment: str) -> Connector:
        key = (broker, environment)
        with self._lock:
            if key not in self._open:
                found = self.described.get(broker)
                if found is None or environment not in found.environments:
                    raise UnknownBroker(broker)
                self._open[key] = found.connect(environment, self.settings)
            return self._open[key]
