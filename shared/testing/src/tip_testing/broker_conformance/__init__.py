"""What every broker adapter must pass before an executor may use it.

    from tip_testing.broker_conformance import Conformance

    class TestMyBroker(Conformance):
        @pytest.fixture
        def market(self): ...  # a `Market`: a fresh account there, and symbols that behave as named

Or let `tip broker check` run it (`tip_testing.broker_check`), with a market made of the broker's simulator or sandbox.

A published suite for pytest and Hypothesis: one class of plain facts, one state machine (`machine`) that does whatever
may be done to orders in any order and checks after each step that updates, queries and listings agree. A
hostile broker of its own (`hostile`) gives the adapter answers that no broker should give.
It needs pytest and Hypothesis, which nothing else here does: only tests import it.
"""

from tip_testing.broker_conformance.facts import Conformance
from tip_testing.broker_conformance.hostile import Hostile
from tip_testing.broker_conformance.machine import machine
from tip_testing.broker_conformance.market import Listener, Market, limit, order

__all__ = ["Conformance", "Hostile", "Listener", "Market", "limit", "machine", "order"]
