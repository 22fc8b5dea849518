"""Who a caller is: from the credential presented to the `Principal`, over HTTP or otherwise.

Everything about the caller is read from `identity_api` at each request, so a disabled key, a removed role or a
cancelled entitlement counts from the next request on.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Engine, Row, text

from chassis import callers, db, keys, metrics, oidc, problems, ratelimit, tokens
from chassis.config import ServiceConfig
from chassis.fields import Identifier
from chassis.keyuse import KeyUses
from chassis.principals import Bounds, Kind, Principal, Role, Users

# The only reads that see more than one organization: they find out which is the caller's.
_API_KEY = text("""
    SELECT id, key_digest, organization_id, environment, permissions, entitlements, bounds
    FROM identity_api.usable_key(:digest)
""")
# Always one row: the user, the organization that the token names, and the user's membership in it.
_USER = text("""
    SELECT user_id, deleted, organization_id, decided, role, entitlements
    FROM identity_api.identified_user(:provider, :subject, :external_id)
""")
_SERVICE_ACCOUNT = text("""
    SELECT scopes, organization_id, entitlements
    FROM identity_api.identified_service_account(:client_id, :organization_id)
""")
_PUBLIC_KEYS = text("SELECT kid, public_jwk FROM identity_api.signing_key")

# New signing keys are published before they sign (identity), so a short cooldown refuses nobody.
_LOCAL_KEYS_KEPT_S = 60.0
_LOCAL_KEYS_COOLDOWN_S = 1.0


class KeyRow(NamedTuple):
    """A usable API key, as `identity_api.usable_api_key` has it."""

    id: UUID
    key_digest: bytes
    organization_id: UUID
    environment: str
    permissions: Sequence[str]
    entitlements: Sequence[str]
    bounds: Mapping[str, Any] | None


FindKeys = Callable[..., Sequence[KeyRow]]


class PresentedCredentials(NamedTuple):
    """What a caller identifies itself with; `credentials` are pairs of "key" or "bearer" and the value."""

    credentials: Sequence[tuple[str, str]]
    organization: str | None
    """The value of x-organization-id."""
    address: str | None


@dataclass(frozen=True)
class Access:
    """What `allow` needs of a service; one per process, in `app.extensions["access"]`."""

    engine: Engine
    verifier: tokens.Verifies
    provider: str
    rate_limit: ratelimit.RateLimit
    users: Users = field(default_factory=Users)
    key_uses: KeyUses | None = None


def for_service(config: ServiceConfig, engine: Engine, keys: tokens.KeySource | None = None) -> Access:
    """What a service's configuration says about its callers."""
    ours = tokens.Verifier(keys or local_keys(engine), issuer=config.token_issuer, audience=config.token_audience)
    limit = ratelimit.RateLimit(config.redis_url, per_minute=config.rate_limit_per_minute)
    uses = KeyUses(config.redis_url)
    if not config.oidc_issuer:
        return Access(engine, ours, config.identity_provider, limit, key_uses=uses)
    theirs = tokens.Verifier(
        oidc.provider_keys(config.oidc_issuer),
        issuer=config.oidc_issuer,
        audience=config.oidc_audience or config.token_audience,
    )
    users = Users(
        config.oidc_issuer,
        config.oidc_organization_claim,
        config.oidc_role_claim,
        dict(pair.split("=") for pair in config.oidc_roles),
    )
    return Access(engine, tokens.Verifiers(ours, theirs), config.identity_provider, limit, users, uses)


def local_keys(engine: Engine) -> tokens.CachedKeys:
    """The platform's own signing keys, read where identity publishes them."""

    def fetch() -> Mapping[str, Mapping[str, Any]]:
        with db.reading(engine) as connection:
            return {row.kid: row.public_jwk for row in connection.execute(_PUBLIC_KEYS)}

    return tokens.CachedKeys(fetch, keep_s=_LOCAL_KEYS_KEPT_S, cooldown_s=_LOCAL_KEYS_COOLDOWN_S)


def identify(access: Access, presented: PresentedCredentials, find_keys: FindKeys | None = None) -> Principal:
    """The caller behind the one credential presented; anything doubtful about it is a 401."""
    if len(presented.credentials) > 1:
        raise problems.Problem(400, "two_credentials", "Send one credential: x-api-key or Authorization, once.")
    if not presented.credentials:
        return _refuse_credential(access, presented)
    [(kind, value)] = presented.credentials
    try:
        principal = from_key(access, value, find_keys) if kind == "key" else _from_token(access, presented, value)
    except tokens.KeysUnavailable:
        raise problems.unavailable("The keys of tokens cannot be read; nothing was written. Try again.") from None
    return principal or _refuse_credential(access, presented)


def _refuse_credential(access: Access, presented: PresentedCredentials) -> Principal:
    """Refused callers are counted by address: guessing is limited too."""
    access.rate_limit.count(f"address:{presented.address}")
    metrics.REFUSED_CREDENTIALS.inc()
    raise problems.unauthenticated()


def from_key(access: Access, key: str, find_keys: FindKeys | None = None) -> Principal | None:
    if not keys.is_well_formed(key):
        return None
    principal = match_api_key(access, key, (find_keys or partial(_keys, access))(key))
    if principal is None:
        access.rate_limit.count(f"prefix:{keys.prefix(key)}")  # somebody guesses what follows a valid prefix
    return principal


def match_api_key(access: Access, key: str, rows: Sequence[KeyRow]) -> Principal | None:
    """The owner of the key, among the keys with the same prefix."""
    digest = keys.digest(key)
    for row in rows:
        if hmac.compare_digest(bytes(row.key_digest), digest):
            if access.key_uses:
                access.key_uses.note(row.id)
            return Principal(
                Kind.API_KEY,
                str(row.id),
                row.organization_id,
                environment=row.environment,
                grants=frozenset(row.permissions),
                entitlements=frozenset(row.entitlements),
                bounds=Bounds.from_json(row.bounds),
            )
    return None


def _keys(access: Access, key: str) -> list[KeyRow]:
    with db.reading(access.engine) as connection:
        return [KeyRow(*row) for row in connection.execute(_API_KEY, {"digest": keys.digest(key)})]


def _from_token(access: Access, presented: PresentedCredentials, authorization: str) -> Principal | None:
    scheme, token = callers.split_authorization(authorization)
    return from_bearer(access, token, presented.organization) if scheme == "bearer" else None


def from_bearer(access: Access, token: str, organization_header: str | None) -> Principal | None:
    try:
        claims = access.verifier.claims(token)
    except tokens.BadToken:
        return None
    # A token of an external provider is a user's, whatever its claims; with such a provider ours are never users'.
    foreign = claims["iss"] == access.users.issuer
    kind = "user" if foreign else claims.get("principal_type", "user")
    with db.reading(access.engine) as connection:
        if kind == "service_account":
            return _service_account(connection, claims, organization_header)
        if kind == "user" and (foreign or not access.users.issuer):
            return _user(connection, access, claims)
    return None


def _user(connection: Connection, access: Access, claims: Mapping[str, Any]) -> Principal | None:
    """A user of our own must have a row; one of another provider needs none, and is refused once deleted here."""
    external_id = access.users.organization(claims)
    if external_id is not None and not tokens.is_name(external_id):
        return None
    values = {"provider": access.provider, "subject": claims["sub"], "external_id": external_id}
    return user_principal(access, connection.execute(_USER, values).one(), claims)


def user_principal(access: Access, row: Row[Any], claims: Mapping[str, Any]) -> Principal | None:
    """The user of the token by what the database has of it: a row as `_USER` reads it."""
    if row.deleted or (row.user_id is None and not access.users.issuer):
        return None
    role = _role(access.users, row, claims)
    return Principal(
        Kind.USER,
        claims["sub"],
        row.organization_id if role else None,
        role=role,
        entitlements=frozenset(row.entitlements if role else ()),
        provider=access.provider,
        user_id=row.user_id,
        names_organization=access.users.organization(claims) is not None,
    )


def _role(users: Users, row: Row[Any], claims: Mapping[str, Any]) -> Role | None:
    """A membership decides, also a removed one; the provider's claim counts only where there never was one."""
    if row.organization_id is None:
        return None
    if row.decided:
        return Role(row.role) if row.role else None
    return users.role(claims) if users.issuer else None


def _service_account(connection: Connection, claims: Mapping[str, Any], header: str | None) -> Principal | None:
    # A header that is no UUID names no organization; the route decides whether one is needed.
    named = UUID(header) if header and Identifier.PATTERN.fullmatch(header) else None
    values = {"client_id": claims["sub"], "organization_id": named}
    row = connection.execute(_SERVICE_ACCOUNT, values).one_or_none()
    return service_account_principal(row, claims) if row else None


def service_account_principal(row: Row[Any], claims: Mapping[str, Any]) -> Principal:
    """The service account of the token by what the database has of it: a row as `_SERVICE_ACCOUNT` reads it."""
    scopes = frozenset(str(claims.get("scope", "")).split()) & frozenset(row.scopes)
    return Principal(
        Kind.SERVICE_ACCOUNT,
        claims["sub"],
        row.organization_id,
        grants=scopes,
        entitlements=frozenset(row.entitlements),
    )
