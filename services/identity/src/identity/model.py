"""The nouns of identity and what is true of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

SCOPES = (
    "account:read",
    "account:write",
    "credential:read",
    "credential:write",
    "intent:read",
    "control:read",
    "control:write",
    "organization:read",
    "organization:write",
    "api-key:write",
    "entitlement:write",
)
PERMISSIONS = (
    "intent:read",
    "intent:edit",
    "control:read",
    "control:edit",
    "account:read",
    "account:edit",
    "credential:read",
    "credential:edit",
)
ENVIRONMENTS = ("paper", "live")
ENTITLEMENTS = ("controls_premium", "trading_live")


# A key is published this long before it signs, so that every verifier has seen it by then.
PUBLISH_BEFORE_SIGNING = timedelta(seconds=5)


class UnknownKey(Exception):
    """The API key is not one of ours."""


@dataclass(frozen=True)
class Organization:
    id: UUID
    external_id: str
    name: str
    provider: str
    disabled: bool
    created_at: datetime


@dataclass(frozen=True)
class ServiceAccount:
    client_id: str
    name: str
    scopes: tuple[str, ...]
    disabled: bool
    created_at: datetime


@dataclass(frozen=True)
class SigningKey:
    """A key that signs tokens; the private half is sealed."""

    kid: str
    algorithm: str
    public_jwk: Mapping[str, Any]
    sealed_key: bytes
    created_at: datetime


def signing_now(keys: Sequence[SigningKey], now: datetime) -> SigningKey | None:
    """The newest key that everyone has had time to see, or the oldest there is when none has been out long enough."""
    newest_first = sorted(keys, key=lambda key: key.created_at, reverse=True)
    known = [key for key in newest_first if key.created_at <= now - PUBLISH_BEFORE_SIGNING]
    return next(iter(known or newest_first[::-1]), None)


@dataclass(frozen=True)
class ApiKey:
    """A key as it may be shown: never the key itself."""

    id: UUID
    organization_id: UUID
    name: str
    environment: str
    permissions: tuple[str, ...]
    prefix: str
    disabled: bool
    expires_at: datetime | None
    last_used_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class NewApiKey:
    """What a key is to be."""

    name: str
    environment: str
    permissions: tuple[str, ...]
    expires_at: datetime | None = None
