"""What identity reads from its environment."""

from dataclasses import dataclass

from chassis.config import ServiceConfig, setting


@dataclass(frozen=True)
class Config(ServiceConfig):
    key_encryption_key: str = setting(
        "KEY_ENCRYPTION_KEY", "32 random bytes in base64; seals the signing keys at rest", secret=True
    )
    token_lifetime_seconds: int = setting("TOKEN_LIFETIME_SECONDS", "how long an issued token is valid", default=3600)
    validate_per_minute: int = setting(
        "VALIDATE_RATE_LIMIT_PER_MINUTE",
        "key validations a minute for one address, and for one key prefix",
        default=120,
    )
