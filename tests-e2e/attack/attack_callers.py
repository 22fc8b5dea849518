"""Every kind of caller: what it shows, and what it is worth by the contract."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from attack_tenants import Builder, Headers, Tenant, bearer, invented, keyed, unknown_id
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jose import jwt

from identity import model

SCOPES = (
    "account:read", "account:write", "credential:read", "credential:write", "intent:read", "control:read",
    "control:write", "organization:read", "organization:write", "api-key:write", "entitlement:write",
)  # fmt: skip
PERMISSIONS = tuple(
    f"{noun}:{verb}" for noun in ("intent", "control", "account", "credential") for verb in ("read", "edit")
)
ROLES = ("admin", "member", "read_only")


@dataclass(frozen=True)
class Caller:
    """`refused` is the status of a credential that proves nothing; `tenant` the organization it acts for, or None."""

    name: str
    headers: Headers = field(repr=False)
    kind: str
    tenant: Tenant | None = None
    role: str | None = None
    environment: str | None = None
    grants: frozenset[str] = frozenset()
    refused: int | None = None
    belongs: Tenant | None = None
    """Where a user is a member although the token names another organization."""
    names_organization: bool = False
    """Whether the token of a user who acts for no organization names one."""
    usual: bool = True
    """Whether it belongs to the small size, too."""
    accounts: frozenset[str] | None = None
    """What an API key is bounded to; to it no other account is there."""


def forged(claims: dict[str, Any], kid: str, algorithm: str = "RS256") -> str:
    """As ours in every letter but the signature."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return str(jwt.encode(claims, pem.decode(), algorithm=algorithm, headers={"kid": kid}))


def callers(builder: Builder, own: Tenant, bare: Tenant, victim: Tenant) -> list[Caller]:
    return [
        *_without_credential(own),
        *_forged(builder, own),
        *_switched_off(builder, own),
        *_users(builder, own, bare, victim),
        *_keys(builder, own, bare, victim),
        *_services(builder, own, victim),
    ]


def _without_credential(own: Tenant) -> Iterator[Caller]:
    key, token = own.api_keys["paper"], own.tokens["admin"]
    yield Caller("nobody", (), "none", refused=401)
    yield Caller("nobody naming an organization", (("x-organization-id", own.id),), "none", refused=401)
    yield Caller("empty key", keyed(""), "none", refused=401, usual=False)
    yield Caller("basic authorization", (("Authorization", "Basic YTpi"),), "none", refused=401, usual=False)
    yield Caller("bearer without token", (("Authorization", "Bearer"),), "none", refused=401, usual=False)
    yield Caller("key and token", (*keyed(key), *bearer(token)), "none", refused=400)
    yield Caller("two keys", (*keyed(key), *keyed(key)), "none", refused=400)
    yield Caller("two tokens", (*bearer(token), *bearer(token)), "none", refused=400, usual=False)


def _forged(builder: Builder, own: Tenant) -> Iterator[Caller]:
    token = own.tokens["admin"]
    claims, kid = jwt.get_unverified_claims(token), jwt.get_unverified_header(token)["kid"]
    head, payload, signature = token.split(".")
    yield Caller("forged token", bearer(forged(claims, kid)), "none", refused=401)
    yield Caller("forged token of an unknown key", bearer(forged(claims, "0123456789abcdef")), "none", refused=401)
    yield Caller("token with another payload", bearer(f"{head}.{payload[:-6]}AAAAAA.{signature}"), "none", refused=401)
    expired = builder.short.user_token(own.subject("admin"), own.external_id, "admin")
    yield Caller("expired token", bearer(expired), "none", refused=401)
    yield Caller("key with a wrong checksum", keyed(own.api_keys["paper"][:-1] + "~"), "none", refused=401)
    yield Caller("invented key", keyed(invented()), "none", refused=401)


def _switched_off(builder: Builder, own: Tenant) -> Iterator[Caller]:
    admin, identity = bearer(own.tokens["admin"]), builder.identity
    for word, body in (("disabled", {"disabled": True}), ("deleted", None)):
        made = builder.call("POST", "/v1/api-keys", admin, _new_key("paper", PERMISSIONS))
        builder.call("PATCH" if body else "DELETE", f"/v1/api-keys/{made['id']}", admin, body)
        yield Caller(f"{word} key", keyed(made["key"]), "none", refused=401)
    yield Caller("expired key", keyed(builder.expired_key(own, PERMISSIONS)), "none", refused=401)
    operator = bearer(builder.operator.token)
    for word, body in (("disabled", {"disabled": True}), ("deleted", None)):
        service = identity.service_account()
        builder.call("PATCH" if body else "DELETE", f"/v1/service-accounts/{service.client_id}", operator, body)
        yield Caller(f"{word} service account", bearer(service.token, own.id), "none", refused=401)
    gone = _member(builder, own, "gone", "admin")
    builder.call("DELETE", "/v1/users/me", gone)
    yield Caller("deleted user", gone, "none", refused=401)
    closed = identity.organization(f"{own.canary}-closed", entitlements=("controls_premium", "trading_live"))
    builder.call("PATCH", f"/v1/organizations/{closed.id}", operator, {"disabled": True})
    yield Caller("key of a disabled organization", keyed(closed.api_keys["paper"]), "none", refused=401)
    of_closed = bearer(closed.tokens["admin"])
    yield Caller("admin of a disabled organization", of_closed, "user", names_organization=True)
    named = bearer(builder.operator.token, str(closed.id))
    yield Caller("service account naming a disabled organization", named, "service", grants=frozenset(SCOPES))


def _users(builder: Builder, own: Tenant, bare: Tenant, victim: Tenant) -> Iterator[Caller]:
    for role in ROLES:
        yield Caller(role, bearer(own.tokens[role]), "user", own, role)
        yield Caller(f"{role} of bare", bearer(bare.tokens[role]), "user", bare, role, usual=role == "admin")
    named = bearer(own.tokens["admin"], victim.id)
    yield Caller("admin naming the victim", named, "user", own, "admin")
    of_victim = builder.identity.user_token(own.subject("admin"), victim.external_id, "admin")
    yield Caller("admin with a token for the victim", bearer(of_victim), "user", belongs=own,
                 names_organization=True)  # fmt: skip
    stronger = builder.identity.user_token(own.subject("read_only"), own.external_id, "admin")
    yield Caller("read_only with a token that says admin", bearer(stronger), "user", own, "read_only")
    removed = _member(builder, own, "removed", "admin")
    path = f"/v1/organizations/{own.id}/memberships/{own.canary}-removed"
    builder.call("DELETE", path, bearer(own.tokens["admin"]))
    yield Caller("removed admin", removed, "user", names_organization=True)
    yield Caller("user without organization", bearer(builder.identity.user_without_organization()), "user")
    unseen = builder.identity.user_token(f"{own.canary}-never-seen", own.external_id, "admin")
    yield Caller("user nobody knows", bearer(unseen), "none", refused=401)


def _keys(builder: Builder, own: Tenant, bare: Tenant, victim: Tenant) -> Iterator[Caller]:
    everything = frozenset(PERMISSIONS)
    for environment in ("paper", "live"):
        key = own.api_keys[environment]
        yield Caller(f"{environment} key", keyed(key), "key", own, None, environment, everything)
        bares = keyed(bare.api_keys[environment])
        yield Caller(f"{environment} key of bare", bares, "key", bare, None, environment, everything)
    named = (*keyed(own.api_keys["paper"]), ("x-organization-id", victim.id))
    yield Caller("paper key naming the victim", named, "key", own, None, "paper", everything)
    for place in ("paper", "spare_paper"):
        accounts = frozenset({own.accounts[place]})
        bounds = model.Bounds(accounts=tuple(map(UUID, accounts)))
        key = builder.identity.key(UUID(own.id), "paper", PERMISSIONS, bounds)
        yield Caller(f"key bounded to {place}", keyed(key), "key", own, None, "paper", everything, accounts=accounts)
    for environment in ("paper", "live"):
        for permission in PERMISSIONS:
            only, but = frozenset({permission}), everything - {permission}
            for words, grants in ((f"only {permission}", only), (f"all but {permission}", but)):
                key = builder.identity.key(UUID(own.id), environment, sorted(grants))
                name, usual = f"{environment} key with {words}", environment == "paper" and grants is only
                yield Caller(name, keyed(key), "key", own, None, environment, grants, usual=usual)


def _services(builder: Builder, own: Tenant, victim: Tenant) -> Iterator[Caller]:
    token, everything, identity = builder.operator.token, frozenset(SCOPES), builder.identity
    yield Caller("service account", bearer(token, own.id), "service", own, grants=everything)
    yield Caller("service account naming nobody", bearer(token), "service", grants=everything)
    unknown = bearer(token, unknown_id())
    yield Caller("service account naming an unknown organization", unknown, "service", grants=everything)
    for word, header in (("no id", "victim"), ("two", f"{own.id}, {victim.id}"), ("SQL", f"{own.id}' OR '1'='1")):
        name = f"service account naming {word}"
        yield Caller(name, bearer(token, header), "service", grants=everything, usual=False)
    both = (*bearer(token, own.id), ("x-organization-id", victim.id))
    yield Caller("service account naming two organizations", both, "service", grants=everything)
    for scope in SCOPES:
        for words, grants in ((f"only {scope}", frozenset({scope})), (f"all but {scope}", everything - {scope})):
            made = identity.service_account(sorted(grants))
            usual = len(grants) == 1
            yield Caller(f"service account with {words}", bearer(made.token, own.id), "service", own, grants=grants,
                         usual=usual)  # fmt: skip
    reduced = identity.service_account()
    change = {"scopes": ["account:read"]}
    builder.call("PATCH", f"/v1/service-accounts/{reduced.client_id}", bearer(token), change)
    kept = frozenset({"account:read"})
    yield Caller("service account whose scopes were taken", bearer(reduced.token, own.id), "service", own, grants=kept)
    narrow = identity.service_token(identity.service_account().client_id, ("account:read",))
    yield Caller("token with fewer scopes than its account", bearer(narrow, own.id), "service", own, grants=kept)


def _member(builder: Builder, own: Tenant, word: str, role: str) -> Headers:
    subject = f"{own.canary}-{word}"
    path = f"/v1/organizations/{own.id}/memberships/{subject}"
    builder.call("PUT", path, bearer(own.tokens["admin"]), {"role": role})
    return bearer(builder.identity.user_token(subject, own.external_id, role))


def _new_key(environment: str, permissions: tuple[str, ...]) -> dict[str, Any]:
    return {"name": "attack", "environment": environment, "permissions": list(permissions)}
