"""The nouns of identity and what is true of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from identity import model_keys

ApiKey = model_keys.ApiKey
Bounds = model_keys.Bounds
NewApiKey = model_keys.NewApiKey
permissions_given = model_keys.permissions_given
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
EVENT_TYPES = (
    "api_key.created",
    "api_key.deleted",
    "api_key.updated",
    "entitlement.deleted",
    "entitlement.updated",
    "invitation.accepted",
    "invitation.created",
    "invitation.deleted",
    "membership.deleted",
    "membership.updated",
    "organization.created",
    "organization.updated",
    "service_account.created",
    "service_account.deleted",
    "service_account.updated",
    "user.deleted",
)
ADMIN = "admin"
ENVIRONMENTS = ("paper", "live")
ENTITLEMENTS = ("controls_premium", "trading_live")

# What a service account must itself be allowed before it may put it into a key. To submit intents is what only keys
# can do, so no scope stands for it: `api-key:write` is that power.
SCOPE_BEHIND = {
    "intent:read": "intent:read",
    "control:read": "control:read",
    "control:edit": "control:write",
    "account:read": "account:read",
    "account:edit": "account:write",
    "credential:read": "credential:read",
    "credential:edit": "credential:write",
}

PUBLISH_BEFORE_SIGNING = timedelta(seconds=5)  # so that every verifier has seen a key by then
RETIREMENT_MARGIN = timedelta(minutes=2)  # beyond the life of a token: the verifiers' leeway and then some


class UnknownKey(Exception):
    """The API key is not one of ours."""


class NotFound(Exception):
    """There is nothing here that you may see."""


class OrganizationExists(Exception):
    """The provider's id already belongs to an organization."""


class GrantTooWide(Exception):
    """Nobody can give away more than their own credential allows."""


class LastAdmin(Exception):
    """An organization's last admin stays: another one must be made first."""


class MemberExists(Exception):
    """They are a member already: change their role instead."""


class LimitReached(Exception):
    """There are as many of these as there may be. Delete one first."""


class UserDeleted(Exception):
    """This user was deleted, which is for ever."""


class ProviderUnavailable(Exception):
    """The identity provider refused or is out of reach; the user was not deleted. Try again."""


class DeletionUnconfirmed(Exception):
    """The deletion has begun and is not confirmed yet; it will be completed without being asked for again."""


class TokenRefused(Exception):
    """No token, for a reason RFC 6749 has a word for."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error, self.description = error, description


@dataclass(frozen=True)
class Limits:
    """How many there may be in an organization, or of service accounts on the platform, and for how long."""

    api_keys: int = 1_000
    members: int = 1_000
    service_accounts: int = 1_000
    invitations: int = 1_000
    invitation_lifetime: timedelta = timedelta(days=7)


def check_limit(count: int, most: int) -> None:
    """`count` includes the new one."""
    if count > most:
        raise LimitReached


@dataclass(frozen=True)
class Organization:
    id: UUID
    external_id: str
    name: str
    provider: str
    disabled: bool
    created_at: datetime
    totp_required: bool = False
    """Whether its people may let clients act for it only after showing a second factor."""


@dataclass(frozen=True)
class Entitlement:
    organization_id: UUID
    name: str
    expires_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class User:
    """Somebody the identity provider knows as `subject`."""

    id: UUID
    provider: str
    subject: str
    created_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True)
class Member:
    """A user as one organization sees them."""

    subject: str
    user_id: UUID
    role: str
    created_at: datetime


@dataclass(frozen=True)
class Membership:
    """An organization as one user sees it."""

    organization_id: UUID
    external_id: str
    name: str
    role: str


@dataclass(frozen=True)
class Invitation:
    """Lets one user become a member, by a code that is shown once; `invited_by` is the admin's subject."""

    id: UUID
    organization_id: UUID
    subject: str
    role: str
    invited_by: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class Standing:
    """What is recorded of a user in an organization; no role once the membership was taken away."""

    role: str | None


def may_change_members(claimed: str | None, recorded: Standing | None) -> bool:
    """Only an admin of the organization may. What is recorded decides; the token's claim only where nothing is."""
    return (recorded.role if recorded else claimed) == ADMIN


def is_last_admin(admins: Sequence[str], subject: str) -> bool:
    return list(admins) == [subject]


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
    needed_until: datetime | None = None


@dataclass(frozen=True)
class Resealed:
    """How many signing keys are under the current key-encryption key now, and the ids of those that did not open."""

    count: int
    unopened: tuple[str, ...]


def signing_now(keys: Sequence[SigningKey], now: datetime) -> SigningKey | None:
    """The newest key that everyone has had time to see, or the oldest there is when none has been out long enough."""
    newest_first = sorted(keys, key=lambda key: key.created_at, reverse=True)
    published = [key for key in newest_first if key.created_at <= now - PUBLISH_BEFORE_SIGNING]
    return next(iter(published or newest_first[::-1]), None)


def no_longer_needed(keys: Sequence[SigningKey], now: datetime, lifetime: timedelta) -> list[SigningKey]:
    """The keys that nothing still valid can have been signed with: a younger one signs, and for long enough."""
    oldest_first = sorted(keys, key=lambda key: key.created_at)
    return [
        key
        for key, successor in pairwise(oldest_first)
        if successor.created_at + PUBLISH_BEFORE_SIGNING + lifetime + RETIREMENT_MARGIN < now
        and (key.needed_until is None or key.needed_until + RETIREMENT_MARGIN < now)
    ]


def permissions_beyond(scopes: Collection[str], permissions: Collection[str]) -> set[str]:
    """The permissions that a service account with these scopes may not put into a key."""
    return {permission for permission in permissions if SCOPE_BEHIND.get(permission, "api-key:write") not in scopes}
