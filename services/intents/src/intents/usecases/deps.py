"""What the use cases work with."""

from dataclasses import dataclass

from sqlalchemy import Engine

from chassis.hints import LogHeadHints
from chassis.outbox import Outbox
from intents.store import Direct


@dataclass(frozen=True)
class Deps:
    engine: Engine
    direct: Direct
    outbox: Outbox
    hints: LogHeadHints
