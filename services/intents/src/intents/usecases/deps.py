"""What the use cases work with."""

from dataclasses import dataclass

from sqlalchemy import Engine

from chassis.hints import LogHeadHints
from chassis.outbox import Outbox
from intents.store import PreparedConnections


@dataclass(frozen=True)
class Deps:
    engine: Engine
    connections: PreparedConnections
    outbox: Outbox
    hints: LogHeadHints
