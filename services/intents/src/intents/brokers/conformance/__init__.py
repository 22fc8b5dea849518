"""What every broker adapter must pass before an executor may use it.

    from intents.brokers.conformance import Conformance

    class TestMyBroker(Conformance):
        @pytest.fixture
        def market(self): ...  # a `Market`: a fresh account there, and symbols that behave as named

A published suite for pytest and Hypothesis: one class of plain facts, one state machine (`machine`) that does whatever
may be done to orders in any order and checks after each step that updates, queries and listings agree. A
hostile broker of its own (`hostile`) gives the adapter answers that no broker should give.
It needs pytest and Hypothesis, which nothing else here does: only tests import it.
"""

from intents.brokers.conformance.facts import Conformance
from intents.brokers.conformance.hostile import Hostile
from intents.brokers.conformance.machine import machine
from intents.brokers.conformance.market import Listener, Market, limit, order

__all__ = ["Conformance", "Hostile", "Listener", "Market", "limit", "machine", "order"]
