"""The circuit breakers of a process, one for each lane."""

import threading

from intents.execution.breaker import Breaker
from intents.execution.metrics import CIRCUIT, CIRCUITS_OF_ORGANIZATIONS
from intents.execution.model.tries import Tries


class Breakers:
    def __init__(self) -> None:
        self._made: dict[str, Breaker] = {}
        self._lock = threading.Lock()

    def of(self, broker: str, environment: str) -> Breaker:
        lane = f"{broker} {environment}"
        with self._lock:
            if lane not in self._made:
                gauges = CIRCUIT.labels(broker, environment), CIRCUITS_OF_ORGANIZATIONS.labels(broker, environment)
                self._made[lane] = Breaker(gauges[0].set, gauges[1].set)
            return self._made[lane]

    def states(self) -> dict[str, str]:
        """How each way to a broker is, by lane: closed, half_open or open. Only those that were tried are known."""
        return {lane: breaker.state_name for lane, breaker in self._known().items()}

    def tries(self) -> dict[str, Tries]:
        """By lane, how many of the commands that wait for an open circuit may be claimed."""
        return {lane: breaker.tries() for lane, breaker in self._known().items()}

    def _known(self) -> dict[str, Breaker]:
        with self._lock:
            return dict(self._made)
