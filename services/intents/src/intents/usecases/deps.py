"""What the use cases work with."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Engine

from chassis.hints import LogHeadHints
from chassis.outbox import Outbox
from control_rules import PRICE_MAX_AGE
from intents.store import PreparedConnections


@dataclass(frozen=True)
class Deps:
    engine: Engine
    connections: PreparedConnections
    outbox: Outbox
    hints: LogHeadHints
    price_max_age: timedelta = PRICE_MAX_AGE
