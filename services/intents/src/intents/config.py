"""What intents reads from its environment."""

from dataclasses import dataclass

from chassis.config import BadConfiguration, ServiceConfig, setting


@dataclass(frozen=True)
class Config(ServiceConfig):
    statistics_every_seconds: float = setting(
        "STATISTICS_EVERY_SECONDS", "how often the log is added to the statistics", default=2.0
    )
    refusals_kept_days: int = setting("REFUSALS_KEEP_DAYS", "days a refusal by controls is kept", default=30)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.refusals_kept_days < 1:
            raise BadConfiguration("REFUSALS_KEEP_DAYS: must be at least 1")
