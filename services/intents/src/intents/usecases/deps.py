"""What the use cases work with."""

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import Engine

from chassis.hints import LogHeadHints
from chassis.outbox import Outbox
from control_rules import PRICE_MAX_AGE
from intents.store import PreparedConnections


class Freshness(NamedTuple):
    """How long ago a price may have been read, and how long a request waits for a newer one."""

    seconds: float = 5.0
    wait_seconds: float = 2.0


FRESHNESS = Freshness()


@dataclass(frozen=True)
class Deps:
    engine: Engine
    connections: PreparedConnections
    outbox: Outbox
    hints: LogHeadHints
    price_max_age: timedelta = PRICE_MAX_AGE
    freshness: Freshness = FRESHNESS
