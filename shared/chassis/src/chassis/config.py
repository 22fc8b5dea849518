"""Configuration from the environment: read once, frozen, every variable documented where it stands.

    @dataclass(frozen=True)
    class Config(ServiceConfig):
        attempt_limit: int = setting("OUTBOX_ATTEMPT_LIMIT", "how often a row is tried", default=10)

`Config.from_env()` raises `BadConfiguration` naming every variable that is missing or wrong;
`stop_on_bad_configuration` turns that into one line per variable and exit
code 2, which a supervisor reads as "do not restart".
"""

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, cast
from urllib.parse import urlsplit

from chassis import cors, sealing

EXIT_BAD_CONFIGURATION = 2

_ROLES = ("admin", "member", "read_only")
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


class BadConfiguration(Exception):
    """One or more variables are missing or have a value that cannot be used."""


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("must be true or false")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


_PARSERS: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: int,
    float: float,
    bool: _boolean,
    tuple[str, ...]: _words,
}


def setting(variable: str, meaning: str, *, default: Any = dataclasses.MISSING, secret: bool = False) -> Any:
    """A dataclass field read from an environment variable; without a default the variable is required."""
    metadata = {"variable": variable, "meaning": meaning, "secret": secret}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata, repr=not secret, kw_only=True)
    return dataclasses.field(default=default, metadata=metadata, repr=not secret, kw_only=True)


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
    """A frozen dataclass whose fields are declared with `setting`."""

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        source = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        problems: list[str] = []
        for field in _settings(cls):
            try:
                values |= _read(field, source)
            except ValueError as problem:
                problems.append(f"{field.metadata['variable']}: {problem} ({field.metadata['meaning']})")
        if problems:
            raise BadConfiguration("\n".join(problems))
        return cls(**values)

    @classmethod
    def documentation(cls) -> list[tuple[str, str, str]]:
        """(variable, default, meaning) of every setting, for the README tables."""
        rows = []
        for field in _settings(cls):
            default = "required" if field.default is dataclasses.MISSING else str(field.default)
            rows.append((field.metadata["variable"], default, field.metadata["meaning"]))
        return rows


def _settings(config: type[EnvironmentConfig]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(config) if "variable" in field.metadata]


def _read(field: dataclasses.Field[Any], source: Mapping[str, str]) -> dict[str, Any]:
    text = source.get(field.metadata["variable"], "").strip()
    if not text:
        if field.default is dataclasses.MISSING:
            raise ValueError("is required and not set")
        return {}
    try:
        return {field.name: _PARSERS[field.type](text)}
    except ValueError as problem:
        # The value itself is left out: it may be a secret.
        raise ValueError(f"has an unusable value: {_explain(field, problem)}") from None


def _explain(field: dataclasses.Field[Any], problem: ValueError) -> str:
    return "must be a number" if field.type in (int, float) else str(problem)


def decode_key(text: str, variable: str) -> bytes:
    """32 bytes from their base64 form, or BadConfiguration naming the variable."""
    try:
        return sealing.decode_key(text)
    except sealing.BadKey as problem:
        raise BadConfiguration(f"{variable}: {problem}") from None


@dataclasses.dataclass(frozen=True)
class ServiceConfig(EnvironmentConfig):
    """What every service needs; a service's own `Config` adds to it."""

    database_url: str = setting("DATABASE_URL", "Postgres, as the service's own role", secret=True)
    redis_url: str = setting("REDIS_URL", "Redis or Valkey, for queues and rate limits", secret=True)
    queue_url: str = setting(
        "QUEUE_URL", "kombu address of the queues; the Redis above when empty", default="", secret=True
    )
    database_pool_size: int = setting("DATABASE_POOL_SIZE", "connections per process; at least its threads", default=8)
    token_issuer: str = setting("TOKEN_ISSUER", "`iss` of accepted tokens", default="https://identity.tip.local")
    token_audience: str = setting("TOKEN_AUDIENCE", "`aud` of accepted tokens", default="tip")
    identity_provider: str = setting(
        "IDENTITY_PROVIDER", "name of the provider of users and organizations", default="local"
    )
    oidc_issuer: str = setting(
        "OIDC_ISSUER", "OpenID Connect provider of the users; empty: users are identity's own", default=""
    )
    oidc_audience: str = setting("OIDC_AUDIENCE", "`aud` of its tokens; TOKEN_AUDIENCE when empty", default="")
    oidc_organization_claim: str = setting(
        "OIDC_ORGANIZATION_CLAIM", "claim that holds the organization's id there; dots go deeper", default="org_id"
    )
    oidc_role_claim: str = setting(
        "OIDC_ROLE_CLAIM", "claim that holds the role, or a list with it; dots go deeper", default="org_role"
    )
    oidc_roles: tuple[str, ...] = setting(
        "OIDC_ROLES", "what its roles are called here: `desk-lead=admin,desk=member`; else as they are", default=()
    )
    rate_limit_per_minute: int = setting(
        "RATE_LIMIT_PER_MINUTE", "units of work a minute for each principal", default=6000
    )
    trusted_proxies: int = setting("TRUSTED_PROXIES", "proxies in front whose X-Forwarded-For is believed", default=0)
    cors_origins: tuple[str, ...] = setting(
        "CORS_ORIGINS", "origins of the pages that may call from browsers: `https://desk.example.com,…`", default=()
    )
    log_format: str = setting("LOG_FORMAT", "json, text, or auto (text on a terminal)", default="auto")
    log_level: str = setting("LOG_LEVEL", "debug, info, warning or error", default="info")
    outbox_attempt_limit: int = setting("OUTBOX_ATTEMPT_LIMIT", "attempts before an outbox row is failed", default=10)
    outbox_keep_days: int = setting("OUTBOX_KEEP_DAYS", "days a completed outbox row is kept", default=7)
    cursor_key: str = setting("CURSOR_KEY", "signs list cursors; the same in every process", secret=True)

    def __post_init__(self) -> None:
        if self.log_format not in ("json", "text", "auto"):
            raise BadConfiguration("LOG_FORMAT: must be json, text or auto")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise BadConfiguration("LOG_LEVEL: must be debug, info, warning or error")
        if self.oidc_issuer and self.oidc_issuer == self.token_issuer:
            raise BadConfiguration("OIDC_ISSUER: must not be TOKEN_ISSUER, whose tokens are service accounts'")
        if any(len(pair.split("=")) != 2 for pair in self.oidc_roles):
            raise BadConfiguration("OIDC_ROLES: must be theirs=ours, separated by commas")
        if any(pair.split("=")[1] not in _ROLES for pair in self.oidc_roles):
            raise BadConfiguration(f"OIDC_ROLES: our roles are {', '.join(_ROLES)}")
        _check_address("DATABASE_URL", self.database_url, ("postgresql", "postgres"))
        _check_address("REDIS_URL", self.redis_url, ("redis", "rediss", "unix"))
        _check_at_least_one(
            RATE_LIMIT_PER_MINUTE=self.rate_limit_per_minute,
            DATABASE_POOL_SIZE=self.database_pool_size,
            OUTBOX_ATTEMPT_LIMIT=self.outbox_attempt_limit,
            OUTBOX_KEEP_DAYS=self.outbox_keep_days,
        )
        if not all(map(cors.is_origin, self.cors_origins)):
            wanted = "https://desk.example.com, in lower case, without a path or the default port"
            raise BadConfiguration(f"CORS_ORIGINS: must be origins as browsers send them: {wanted}")
        if self.trusted_proxies < 0:
            raise BadConfiguration("TRUSTED_PROXIES: must not be negative")

    @property
    def queues(self) -> str:
        return self.queue_url or self.redis_url


def _check_address(variable: str, address: str, schemes: tuple[str, ...]) -> None:
    try:
        parts = urlsplit(address)
        usable = parts.scheme in schemes and bool(parts.hostname or parts.path) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise BadConfiguration(f"{variable}: must be an address such as {schemes[0]}://user:password@host/name")


def _check_at_least_one(**settings: int) -> None:
    for variable, value in settings.items():
        if value < 1:
            raise BadConfiguration(f"{variable}: must be at least 1")


@contextmanager
def stop_on_bad_configuration(process: str) -> Iterator[None]:
    """End the process with one clear line per variable instead of a stack trace."""
    try:
        yield
    except BadConfiguration as problem:
        for line in str(problem).splitlines():
            sys.stderr.write(f"{process}: configuration: {line}\n")
        sys.exit(EXIT_BAD_CONFIGURATION)


def scoped(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The environment of one service in a process that serves several: `IDENTITY_X` stands before `X`."""
    own = {name.removeprefix(prefix): value for name, value in environment.items() if name.startswith(prefix)}
    return cast("dict[str, str]", {**environment, **own})
