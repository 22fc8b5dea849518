"""What controls reads from its environment."""

from dataclasses import dataclass

from chassis.config import BadConfiguration, ServiceConfig, setting


@dataclass(frozen=True)
class Config(ServiceConfig):
    reference_price_max_age_seconds: int = setting(
        "REFERENCE_PRICE_MAX_AGE_SECONDS", "how old a price that limits use may be; the same in intents", default=60
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference_price_max_age_seconds < 1:
            raise BadConfiguration("REFERENCE_PRICE_MAX_AGE_SECONDS: must be at least 1")
