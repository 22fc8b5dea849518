"""What controls reads from its environment."""

from dataclasses import dataclass

from chassis.config import BadConfiguration, ServiceConfig, setting


@dataclass(frozen=True)
class Config(ServiceConfig):
    reference_price_max_age_seconds: int = setting(
        "REFERENCE_PRICE_MAX_AGE_SECONDS", "how old a price that limits use may be; the same in intents", default=60
    )

    quote_seconds: float = setting(
        "QUOTE_SECONDS",
        "how old a price may be before it is read again; the same in intents",
        default=5.0,
    )
    quote_wait_seconds: float = setting(
        "QUOTE_WAIT_SECONDS",
        "how long a preview waits for prices; the same in intents",
        default=2.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference_price_max_age_seconds < 1:
            raise BadConfiguration("REFERENCE_PRICE_MAX_AGE_SECONDS: must be at least 1")
