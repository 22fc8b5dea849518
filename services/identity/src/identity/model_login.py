"""The nouns of signing in with the local provider, and what is true of them."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

ONE_TIME_CODE_LIFETIME = timedelta(hours=24)
ONE_TIME_CODE_TRIES = 10_000  # a code has 100 bits: this ends a flood, and nobody can use up another's code
SESSION_LIFETIME = timedelta(hours=12)
SECOND_STEP_LIFETIME = timedelta(minutes=10)
"""How long somebody who has given the password may take for the code of the second factor."""
AUTHORIZATION_CODE_LIFETIME = timedelta(minutes=1)
DEVICE_CODE_LIFETIME = timedelta(minutes=10)
DEVICE_INTERVAL_S = 5
FAMILY_LIFETIME = timedelta(days=30)
"""From signing in until a client has to send its user to sign in again, however often it refreshes."""
TOTP_STEP_S = 30
TOTP_TRIES = 5  # of one session
TOTP_FAILURES = 50  # in a row, of whoever knows the password; then only an operator helps
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 128

_LOOPBACK = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]))(?::\d{1,5})?(/[^#]*)?", re.ASCII)
_REDIRECT = re.compile(r"https://[A-Za-z0-9.-]+(:\d{1,5})?(/[!$-;=?-_a-z~]*)?", re.ASCII)


class LoginElsewhere(Exception):
    """People sign in at the OpenID Connect provider of this installation, not here."""


class SignInRefused(Exception):
    """The address, the password or the code is not right."""


class SignInBusy(Exception):
    """Too many people sign in at this moment. Try again in a few seconds."""


class WeakPassword(Exception):
    """The password needs 12 to 128 characters, and must not be the address."""


class LoginExists(Exception):
    """Somebody signs in here as this person already. Invite them: who accepts shows that it is the one you mean."""


class NoMembership(Exception):
    """You belong to no active organization yet. If an admin invited you, enter the code of the invitation."""


class TotpRequired(Exception):
    """This organization requires a second factor."""


class BadClient(Exception):
    """A client's redirect URI is https without a fragment, or http at 127.0.0.1 or [::1]."""


@dataclass(frozen=True)
class Client:
    """An application that people may let act for them. All of them are public: none has a secret."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]

    def may_redirect_to(self, uri: str) -> bool:
        return any(_without_loopback_port(uri) == _without_loopback_port(known) for known in self.redirect_uris)


COMMAND_LINE = Client("tip", "tip on the command line", ("http://127.0.0.1/callback", "http://[::1]/callback"))
"""Known to every installation."""


def _without_loopback_port(uri: str) -> str:
    """RFC 8252 §7.3: a program listens at whatever port is free. Everything else must be the same."""
    found = _LOOPBACK.fullmatch(uri)
    return f"{found[1]}{found[2] or ''}" if found else uri


def check_redirect_uris(uris: Iterable[str]) -> None:
    if not all(_REDIRECT.fullmatch(uri) or _LOOPBACK.fullmatch(uri) for uri in uris):
        raise BadClient


def subject_of(address: str) -> str:
    """A local person is known by their e-mail address, in lower case."""
    return address.strip().lower()


def normalized(password: str) -> str:
    """Two keyboards may write one password in two ways."""
    return unicodedata.normalize("NFKC", password)


def check_password(password: str, subject: str) -> None:
    if not SHORTEST_PASSWORD <= len(normalized(password)) <= LONGEST_PASSWORD or password.lower() == subject:
        raise WeakPassword


def written_code(text: str) -> str:
    """A code as it was issued, however somebody typed it."""
    return re.sub(r"[\s-]", "", text).upper()


@dataclass(frozen=True)
class ProvenPassword:
    """Somebody has shown the password of a user; it counts as long as this hash is the user's."""

    user_id: UUID
    hash: str = field(repr=False)
    better_hash: str | None = field(default=None, repr=False)
    """The same password with the parameters of today, if it was hashed with others."""
    method: str = "password"


@dataclass(frozen=True)
class SignIn:
    """What the audit log says of one that was completed."""

    method: str
    """`password`, or `one_time_code`, by which the password was set."""
    second_factor: bool


@dataclass(frozen=True)
class Reset:
    """What the audit log says of a login that an operator has reset."""

    second_factor_removed: bool


@dataclass(frozen=True)
class Session:
    """A browser that somebody signed in with; `signed_in` is False while the second factor is missing."""

    digest: bytes = field(repr=False)
    user_id: UUID
    subject: str
    signed_in: bool
    totp: bool
    """Whether a second factor was shown."""


@dataclass(frozen=True)
class Totp:
    """The second factor of a user; until it is confirmed it counts for nothing."""

    user_id: UUID
    sealed_secret: bytes = field(repr=False)
    confirmed: bool
    last_step: int


def totp_steps(now: float, last_step: int) -> list[int]:
    """The steps whose code is taken now: this one and its neighbours, but none up to the last that was used."""
    current = int(now) // TOTP_STEP_S
    return [step for step in (current, current - 1, current + 1) if step > last_step]


@dataclass(frozen=True)
class OrganizationChoice:
    id: UUID
    external_id: str
    name: str
    totp_required: bool


@dataclass(frozen=True)
class Family:
    """What one person let one client do for one organization, and all tokens that come of it."""

    id: UUID
    client_id: str
    user_id: UUID
    subject: str
    organization_id: UUID
    totp: bool
    active: bool
    """Neither revoked nor at the end of its life."""


@dataclass(frozen=True)
class AuthorizationCode:
    digest: bytes = field(repr=False)
    family_id: UUID
    client_id: str
    redirect_uri: str
    code_challenge: str
    spent: bool
    expired: bool


@dataclass(frozen=True)
class DeviceCode:
    digest: bytes = field(repr=False)
    client_id: str
    family_id: UUID | None
    denied: bool
    spent: bool
    expired: bool
    too_soon: bool = False
    """Whether the device polled again before the interval had passed."""


@dataclass(frozen=True)
class IssuedTokens:
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    lifetime_s: int


@dataclass(frozen=True)
class NewAuthorizationCode:
    """What a client requests when it sends its user here."""

    client_id: str
    redirect_uri: str
    code_challenge: str


@dataclass(frozen=True)
class Started:
    """What `tip init` found and what it made; a secret is there only if it was made just now."""

    organization_id: UUID
    organization_made: bool
    admin_made: bool
    one_time_code: str | None = field(repr=False)
    client_id: str
    client_secret: str | None = field(repr=False)
