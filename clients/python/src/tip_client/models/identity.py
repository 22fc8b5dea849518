"""Organizations, people, keys and service accounts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from tip_client.models.trading import Actor
from tip_client.records import KEY
from tip_client.words import Environment, Role


@dataclass(frozen=True)
class Organization:
    """An organization, as the identity provider knows it and as we do."""

    id: str
    external_id: str
    name: str
    provider: str
    disabled: bool
    created_at: datetime
    totp_required: bool
    """Whether its people need a second factor to let clients act for it."""


@dataclass(frozen=True)
class Member:
    """Somebody who belongs to an organization; `subject` is the provider's id of the user."""

    subject: str
    user_id: str
    role: Role
    created_at: datetime


@dataclass(frozen=True)
class Membership:
    """An organization that the user belongs to."""

    organization_id: str
    external_id: str
    name: str
    role: Role


@dataclass(frozen=True)
class CurrentUser:
    """The user who calls."""

    id: str | None
    provider: str
    subject: str
    organization_id: str | None
    role: Role | None
    memberships: tuple[Membership, ...]


@dataclass(frozen=True)
class KeyBounds:
    """What an API key is restricted to beyond its permissions; None restricts nothing.

    The budget is what its orders may come to in a day, on all accounts together.
    """

    accounts: tuple[str, ...] | None = None
    symbols: tuple[str, ...] | None = None
    max_notional_per_day: Decimal | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "KeyBounds":
        accounts, symbols, most = (data.get(name) for name in ("accounts", "symbols", "max_notional_per_day"))
        seen, traded = (None if found is None else tuple(found) for found in (accounts, symbols))
        return cls(seen, traded, None if most is None else Decimal(most))


@dataclass(frozen=True)
class Caller:
    """What the credential may do."""

    principal_type: str
    id: str
    organization_id: str | None
    role: Role | None
    environment: Environment | None
    scopes: tuple[str, ...]
    permissions: tuple[str, ...]
    entitlements: tuple[str, ...]
    bounds: KeyBounds | None


@dataclass(frozen=True)
class KeyValidation:
    """What a key is, to whoever holds it."""

    id: str
    organization_id: str
    environment: Environment
    disabled: bool
    created_at: datetime
    expires_at: datetime | None
    bounds: KeyBounds | None


@dataclass(frozen=True)
class ApiKey:
    """An API key, without the key."""

    id: str
    name: str
    environment: Environment
    permissions: tuple[str, ...]
    prefix: str
    disabled: bool
    expires_at: datetime | None
    last_used_at: datetime | None
    created_at: datetime
    bounds: KeyBounds | None


@dataclass(frozen=True)
class CreatedApiKey(ApiKey):
    """The one answer that holds the key itself."""

    key: str = field(repr=False)


@dataclass(frozen=True)
class ServiceAccount:
    """A service account, without its secret."""

    client_id: str
    name: str
    scopes: tuple[str, ...]
    disabled: bool
    created_at: datetime


@dataclass(frozen=True)
class CreatedServiceAccount(ServiceAccount):
    """The one answer that holds the secret itself."""

    client_secret: str = field(repr=False)


@dataclass(frozen=True)
class Entitlement:
    """What an organization has paid for."""

    organization_id: str
    name: str
    expires_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class Invitation:
    """An open invitation, without its code; `invited_by` is the subject of the admin."""

    id: str
    organization_id: str
    subject: str
    role: Role
    invited_by: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class CreatedInvitation(Invitation):
    """The one answer that holds the codes themselves; `one_time_code` is for whoever is new here, to set a password."""

    code: str = field(repr=False)
    one_time_code: str | None = field(repr=False)


@dataclass(frozen=True)
class AuditEntry:
    """A change of an organization, its people, keys or entitlements; `from_` or `to` is None where nothing was."""

    organization_id: str
    sequence: int
    type: str
    target: str
    from_: Mapping[str, Any] | None = field(metadata={KEY: "from"})
    to: Mapping[str, Any] | None
    actor: Actor
    request_id: str | None
    created_at: datetime


@dataclass(frozen=True)
class Token:
    """A bearer token of a service account."""

    access_token: str = field(repr=False)
    token_type: str
    expires_in: int
    scope: str
