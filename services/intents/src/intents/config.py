"""What intents reads from its environment."""

from dataclasses import dataclass
from datetime import timedelta

from chassis.config import BadConfiguration, EnvironmentConfig, ServiceConfig, setting


@dataclass(frozen=True)
class Config(ServiceConfig):
    statistics_every_seconds: float = setting(
        "STATISTICS_EVERY_SECONDS", "how often the log is added to the statistics", default=2.0
    )
    reference_price_max_age_seconds: int = setting(
        "REFERENCE_PRICE_MAX_AGE_SECONDS", "how old a price that limits use may be; the same in controls", default=60
    )
    refusals_kept_days: int = setting("REFUSALS_KEEP_DAYS", "days a refusal by controls is kept", default=30)
    quote_seconds: float = setting(
        "QUOTE_SECONDS", "how old a price may be before it is read again at the broker", default=5.0
    )
    quote_wait_seconds: float = setting(
        "QUOTE_WAIT_SECONDS", "how long an answer waits for prices that are being read", default=2.0
    )

    backlog_max_age_seconds: float = setting(
        "BACKLOG_MAX_AGE_SECONDS",
        "how long commands may be due before orders are refused as `overloaded`; 0: they never are",
        default=10.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.backlog_max_age_seconds < float("inf"):
            raise BadConfiguration("BACKLOG_MAX_AGE_SECONDS: must be 0 or more")
        if self.refusals_kept_days < 1:
            raise BadConfiguration("REFUSALS_KEEP_DAYS: must be at least 1")
        if self.reference_price_max_age_seconds < 1:
            raise BadConfiguration("REFERENCE_PRICE_MAX_AGE_SECONDS: must be at least 1")

    @property
    def price_max_age(self) -> timedelta:
        return timedelta(seconds=self.reference_price_max_age_seconds)


@dataclass(frozen=True)
class SignerConfig(EnvironmentConfig):
    """Of the signer, which needs nothing that the other processes have."""

    database_url: str = setting("DATABASE_URL", "Postgres, as `tip_intents_signer`", secret=True)
    log_signing_key: str = setting("LOG_SIGNING_KEY", "32 random bytes in base64; signs the heads of logs", secret=True)
    sign_every_seconds: float = setting("SIGN_EVERY_SECONDS", "how often heads that moved on are signed", default=2.0)
    log_format: str = setting("LOG_FORMAT", "json, text or auto", default="auto")
    log_level: str = setting("LOG_LEVEL", "the least level that is logged", default="info")

    def __post_init__(self) -> None:
        if self.sign_every_seconds <= 0:
            raise BadConfiguration("SIGN_EVERY_SECONDS: must be greater than 0")
