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
    _connecting: dict[tuple[str, str], threading.Lock] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def account(self, broker: str, environment: str, secret: Mapping[str, str]) -> Broker:
        return self._connector(broker, environment).account(secret)

    def capabilities(self, broker: str) -> Capabilities | None:
        """None if no broker of this name is installed."""
        found = self.described.get(broker)
        return found.capabilities if found else None

    def _connector(self, broker: str, environment: str) -> Connector:
        key = (broker, environment)
        if key not in self._open:
            self._connect(*key)
        return self._open[key]

    def _connect(self, broker: str, environment: str) -> None:
        """To connect may take seconds; only accounts of this broker and environment wait for it."""
        found = self.described.get(broker)
        if found is None or environment not in found.environments:
            raise UnknownBroker(broker)
        with self._lock:
            lock = self._connecting.setdefault((broker, environment), threading.Lock())
        with lock:
            if (broker, environment) not in self._open:
                self._open[broker, environment] = found.connect(environment, self.settings)
