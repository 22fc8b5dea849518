"""What intents reads from its environment."""

from dataclasses import dataclass

from chassis.config import ServiceConfig, setting


@dataclass(frozen=True)
class Config(ServiceConfig):
    statistics_every_seconds: float = setting(
        "STATISTICS_EVERY_SECONDS", "how often the log is added to the statistics", default=2.0
    )
