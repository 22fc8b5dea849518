"""Who may do what, endpoint by endpoint, as the specification and the contract say it: written by hand on purpose.

They do not come from the attacked code. An endpoint that is served or documented and has no line here is a finding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attack_tenants import Tenant, create, unknown_id

ANY_ROLE = frozenset({"admin", "member", "read_only"})
ADMIN = frozenset({"admin"})
Body = Callable[[Tenant], Any]


@dataclass(frozen=True)
class Rule:
    """`users`, `key` and `scope` are what a caller of that kind needs; None: that kind may not, "": any of it may."""

    method: str
    path: str
    users: frozenset[str] | None = None
    key: str | None = None
    scope: str | None = None
    ok: frozenset[int] = frozenset({200})
    """What an allowed caller is answered about an object of its own."""
    objects: str = "none"
    """What its path names: see attack_targets."""
    body: Body | None = None
    public: bool = False
    user_organization: bool = True
    operators: bool = False
    """Service accounts need to name no organization, and reach those of all."""
    entitlement: str | None = None
    unentitled: int = 403
    """What is answered without the entitlement."""
    unsuitable: int = 403
    not_member: int | None = None
    """What a user is answered whose token names an organization that is not theirs; None: as one that names none."""
    makes_account: bool = False
    """Whether it makes an account, which a key that is bounded to others may not."""
    any_environment: bool = False
    """Whether a key may do it in the other environment, too."""
    spare: bool = False
    """Acts on the accounts that are there to be changed."""
    fresh: str | None = None
    """An object made for the one request that is allowed to end it."""
    headers: tuple[tuple[str, str], ...] = ()
    plain_text: bool = False
    listener: str = "web"

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def _both(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


STALE = (("If-Match", '"999999999"'),)
"""Lets an allowed deletion of something that is still needed get as far as it can: 412."""


def _public(method: str, path: str, *ok: int, body: Body | None = None, listener: str = "web") -> Rule:
    return Rule(method, path, public=True, ok=_both(*ok), body=body, listener=listener)


REFLECTION = "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
PAGES = (
    tuple(
        _public("GET", path, 200, listener=listener)
        for listener, paths in (
            ("web", ("/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs")),
            ("web", ("/login", "/login/code", "/login/invitation", "/login/signed-out", "/login/style.css")),
            ("events", ("/health/live", "/health/ready", "/openapi.json", "/docs")),
        )
        for path in paths
    )
    + tuple(_public("GET", "/docs/{name}", 404, listener=listener) for listener in ("web", "events"))
    + tuple(
        _public("gRPC", name, 200, listener="grpc")
        for name in ("grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch", REFLECTION)
    )
    + tuple(
        _public("POST", f"/login{page}", 403)
        for page in ("", "/code", "/device", "/invitation", "/sign-out", "/totp", "/totp/setup")
    )
)
"""Served and not documented."""

IDENTITY = (
    _public("POST", "/api/v1/auth/api-key/validate", 200, 401, body=lambda own: {"api_key": own.api_keys["paper"]}),
    _public("POST", "/oauth/token", 400, 401),
    _public("GET", "/.well-known/jwks.json", 200),
    _public("GET", "/.well-known/openid-configuration", 200),
    _public("GET", "/.well-known/oauth-authorization-server", 200),
    _public("GET", "/oauth/authorize", 400),
    _public("POST", "/oauth/authorize", 400),
    _public("POST", "/oauth/device_authorization", 400),
    _public("POST", "/oauth/revoke", 400),
    _public("GET", "/login/device", 200),
    Rule("GET", "/v1/auth/self", ANY_ROLE, "", "", user_organization=False, operators=True),
    Rule("GET", "/v1/users/me", ANY_ROLE, user_organization=False),
    Rule("DELETE", "/v1/users/me", ANY_ROLE, ok=_both(204), unsuitable=401, fresh="user", plain_text=True),
    Rule("GET", "/v1/organizations/by-provider/{provider}/{provider_id}", ANY_ROLE, None, "", objects="provider",
         user_organization=False, operators=True),
    Rule("POST", "/v1/organizations", None, None, "organization:write", _both(201), operators=True,
         body=lambda own: {"external_id": f"{own.canary}-{unknown_id()[:8]}", "name": own.canary}),
    Rule("GET", "/v1/organizations", None, None, "organization:read", operators=True),
    Rule("GET", "/v1/organizations/{organization_id}", ANY_ROLE, None, "organization:read", objects="organization",
         operators=True),
    Rule("PATCH", "/v1/organizations/{organization_id}", None, None, "organization:write", objects="organization",
         operators=True, body=lambda own: {"name": f"{own.canary} again"}),
    Rule("GET", "/v1/organizations/{organization_id}/memberships", ADMIN, None, "organization:read",
         objects="organization", operators=True),
    Rule("GET", "/v1/organizations/{organization_id}/memberships/{subject}", ADMIN, None, "organization:read",
         objects="member", operators=True),
    Rule("PUT", "/v1/organizations/{organization_id}/memberships/{subject}", ADMIN, ok=_both(200, 201),
         objects="member", fresh="subject", body=lambda _: {"role": "member"}),
    Rule("DELETE", "/v1/organizations/{organization_id}/memberships/{subject}", ADMIN, ok=_both(204),
         objects="member", fresh="member"),
    Rule("DELETE", "/v1/users/me/memberships/{organization_id}", ANY_ROLE, ok=_both(204), objects="own_membership",
         user_organization=False, fresh="leaver"),
    Rule("POST", "/v1/organizations/{organization_id}/invitations", ADMIN, ok=_both(201), objects="organization",
         body=lambda own: {"subject": f"{own.canary}-guest-{unknown_id()[:8]}", "role": "member"}),
    Rule("GET", "/v1/organizations/{organization_id}/invitations", ADMIN, None, "organization:read",
         objects="organization", operators=True),
    Rule("GET", "/v1/organizations/{organization_id}/invitations/{invitation_id}", ADMIN, None, "organization:read",
         objects="invitation", operators=True),
    Rule("DELETE", "/v1/organizations/{organization_id}/invitations/{invitation_id}", ADMIN, ok=_both(204),
         objects="invitation", fresh="invitation"),
    Rule("POST", "/v1/invitations/accept", ANY_ROLE, ok=_both(404), user_organization=False,
         body=lambda _: {"code": f"tip_invitation_{unknown_id()}"}),
    Rule("GET", "/v1/organizations/{organization_id}/audit-entries", ADMIN, None, "organization:read",
         objects="organization", operators=True),
    Rule("GET", "/v1/organizations/{organization_id}/audit-entries/export", ADMIN, None, "organization:read",
         objects="organization", operators=True),
    Rule("POST", "/v1/api-keys", ADMIN, None, "api-key:write", _both(201),
         body=lambda own: {"name": own.canary, "environment": "paper", "permissions": ["intent:edit"]}),
    Rule("GET", "/v1/api-keys", ADMIN, None, "api-key:write"),
    Rule("GET", "/v1/api-keys/{key_id}", ADMIN, None, "api-key:write", objects="key"),
    Rule("PATCH", "/v1/api-keys/{key_id}", ADMIN, None, "api-key:write", objects="key",
         body=lambda own: {"name": f"{own.canary} again"}),
    Rule("DELETE", "/v1/api-keys/{key_id}", ADMIN, None, "api-key:write", _both(204), objects="key", fresh="key"),
    Rule("POST", "/v1/service-accounts", None, None, "organization:write", _both(201), operators=True,
         body=lambda own: {"name": own.canary, "scopes": ["organization:write"]}),
    Rule("GET", "/v1/service-accounts", None, None, "organization:write", operators=True),
    Rule("GET", "/v1/service-accounts/{client_id}", None, None, "organization:write", objects="client", operators=True),
    Rule("PATCH", "/v1/service-accounts/{client_id}", None, None, "organization:write", objects="client",
         operators=True, fresh="client", body=lambda own: {"name": f"{own.canary} again"}),
    Rule("POST", "/v1/service-accounts/{client_id}/secret", None, None, "organization:write", objects="client",
         operators=True, fresh="client"),
    Rule("DELETE", "/v1/service-accounts/{client_id}", None, None, "organization:write", _both(204), objects="client",
         operators=True, fresh="client"),
    Rule("GET", "/v1/organizations/{organization_id}/entitlements", None, None, "entitlement:write",
         objects="organization", operators=True),
    Rule("GET", "/v1/organizations/{organization_id}/entitlements/{name}", None, None, "entitlement:write",
         objects="entitlement", operators=True),
    Rule("PUT", "/v1/organizations/{organization_id}/entitlements/{name}", None, None, "entitlement:write",
         _both(200, 201), objects="entitlement", operators=True, body=lambda _: {}),
    Rule("DELETE", "/v1/organizations/{organization_id}/entitlements/{name}", None, None, "entitlement:write",
         _both(204), objects="entitlement", operators=True, fresh="entitlement"),
)  # fmt: skip


def _accounts(method: str, path: str, *ok: int, writes: bool = False, noun: str = "account", **more: Any) -> Rule:
    grants = (f"{noun}:edit", f"{noun}:write") if writes else (f"{noun}:read", f"{noun}:read")
    return Rule(method, path, ADMIN if writes else ANY_ROLE, *grants, _both(*ok or (200,)), **more)


ACCOUNT, CREDENTIAL = "/v1/accounts/{account_id}", "/v1/accounts/{account_id}/credentials/{credential_id}"
SECRET = {"key_id": "PKattack", "secret_key": "attack-attack-attack"}
ACCOUNTS = (
    Rule("GET", "/v1/accounts/outbox/health", frozenset(), None, "credential:read", operators=True, unsuitable=401,
         not_member=403, plain_text=True),
    Rule("GET", "/v1/accounts/outbox/failed", frozenset(), None, "credential:write", operators=True),
    Rule("POST", "/v1/accounts/outbox/failed/{row_id}/redrive", frozenset(), None, "credential:write",
         objects="failed_row", operators=True, fresh="failed_row"),
    _accounts("POST", "/v1/accounts", 201, writes=True, objects="environment", makes_account=True,
              body=lambda own: {"name": own.canary, "broker": "paper"}),
    _accounts("GET", "/v1/accounts"),
    _accounts("GET", "/v1/brokers"),
    _accounts("GET", ACCOUNT, objects="account"),
    _accounts("PATCH", ACCOUNT, writes=True, objects="account", spare=True,
              body=lambda own: {"name": f"{own.canary} {unknown_id()[:6]}"}),
    _accounts("POST", f"{ACCOUNT}/disable", writes=True, objects="account", spare=True,
              body=lambda own: {"reason": own.canary}),
    _accounts("POST", f"{ACCOUNT}/enable", writes=True, objects="account", spare=True, body=lambda _: {}),
    _accounts("DELETE", ACCOUNT, 412, writes=True, objects="account", spare=True, headers=STALE),
    _accounts("POST", f"{ACCOUNT}/credentials", 201, writes=True, noun="credential", objects="account", spare=True,
              body=lambda own: {"label": own.canary, "secret": SECRET}),
    _accounts("GET", f"{ACCOUNT}/credentials", noun="credential", objects="account"),
    _accounts("GET", CREDENTIAL, noun="credential", objects="credential"),
    _accounts("PUT", f"{CREDENTIAL}/secret", writes=True, noun="credential", objects="credential", spare=True,
              body=lambda _: {"secret": SECRET}),
    _accounts("POST", f"{CREDENTIAL}/test", 202, writes=True, noun="credential", objects="credential", spare=True),
    _accounts("DELETE", CREDENTIAL, 412, writes=True, noun="credential", objects="credential", spare=True,
              headers=STALE),
)  # fmt: skip


def _controls(method: str, path: str, *ok: int, **more: Any) -> Rule:
    writes = method not in ("GET", "POST")
    usual: dict[str, Any] = {
        "objects": "account",
        "spare": writes,
        "entitlement": "controls_premium",
        "unentitled": 404 if method == "DELETE" else 403,  # nothing could be set that could be lifted
        "key": "control:edit" if writes else "control:read",
        "scope": None if writes else "control:read",
        "fresh": "control" if method == "DELETE" else None,
    }
    return Rule(method, path, ADMIN if writes else ANY_ROLE, ok=_both(*ok or (200,)), **(usual | more))


OF_ACCOUNT = "/v1/controls/accounts/{account_id}"
SYMBOL = f"{OF_ACCOUNT}/symbols/{{symbol}}"
STATE: Body = lambda own: {"trading_state": "ACTIVE", "reason": own.canary}  # noqa: E731 - a row of the table
LIMITS: Body = lambda _: {"max_quantity": "1000000"}  # noqa: E731
MANUAL: Body = lambda own: {"manually_disabled": False, "manual_reason": own.canary}  # noqa: E731
TIME: Body = lambda _: {"stale_order_millis": 86_000_000}  # noqa: E731
CONTROLS = (
    _controls("GET", SYMBOL, objects="symbol"),
    _controls("PUT", SYMBOL, 200, 201, objects="symbol", body=MANUAL),
    _controls("DELETE", SYMBOL, 204, objects="symbol"),
    _controls("GET", f"{SYMBOL}/time", objects="symbol"),
    _controls("PATCH", f"{SYMBOL}/time", 200, 201, objects="symbol", body=TIME),
    _controls("DELETE", f"{SYMBOL}/time", 204, objects="symbol"),
    _controls("GET", f"{SYMBOL}/limits", objects="symbol"),
    _controls("PUT", f"{SYMBOL}/limits", 200, 201, objects="symbol", body=LIMITS),
    _controls("DELETE", f"{SYMBOL}/limits", 204, objects="symbol"),
    _controls("GET", f"{OF_ACCOUNT}/symbols"),
    _controls("GET", OF_ACCOUNT),
    _controls("PUT", OF_ACCOUNT, 200, 201, body=STATE),
    _controls("DELETE", OF_ACCOUNT, 204),
    _controls("GET", f"{OF_ACCOUNT}/limits"),
    _controls("PUT", f"{OF_ACCOUNT}/limits", 200, 201, body=LIMITS),
    _controls("DELETE", f"{OF_ACCOUNT}/limits", 204),
    _controls("GET", "/v1/controls/organization", objects="none"),
    _controls("PUT", "/v1/controls/organization", 200, 201, objects="none", spare=False, key=None, body=STATE),
    _controls("DELETE", "/v1/controls/organization", 204, objects="none", spare=False, key=None),
    _controls("GET", f"{OF_ACCOUNT}/history"),
    _controls("GET", "/v1/controls/organization/history", objects="none"),
    _controls("POST", f"{OF_ACCOUNT}/preview", body=lambda _: create()),
)


def _reads(path: str, objects: str = "account", **more: Any) -> Rule:
    return Rule("GET", path, ANY_ROLE, "intent:read", "intent:read", objects=objects, any_environment=True, **more)


INTENTS = f"{ACCOUNT}/intents"
TRADING: dict[str, Any] = {"key": "intent:edit", "objects": "account", "entitlement": "trading_live"}
NOTHING: Body = lambda _: {"symbol": "NOTHING"}  # noqa: E731
INTENT_RULES = (
    Rule("POST", INTENTS, ok=_both(201), body=lambda _: create(), **TRADING),
    Rule("POST", f"{INTENTS}/batch", body=lambda _: {"commands": [create()["command"]]}, **TRADING),
    Rule("POST", f"{INTENTS}/cancel", key="intent:edit", ok=_both(202), objects="account", spare=True, body=NOTHING),
    Rule("POST", f"{ACCOUNT}/positions/close", ok=_both(202), spare=True, body=NOTHING, **TRADING),
    _reads(INTENTS),
    _reads(f"{INTENTS}/stats"),
    _reads(f"{INTENTS}/verify"),
    _reads(f"{INTENTS}/{{intent_id}}", "intent"),
    _reads(f"{INTENTS}/{{intent_id}}/actions", "intent"),
    _reads(f"{INTENTS}/{{intent_id}}/timeline", "intent"),
    _reads(f"{ACCOUNT}/orders"),
    _reads(f"{ACCOUNT}/refusals"),
    _reads(f"{ACCOUNT}/positions"),
    _reads(f"{ACCOUNT}/balances"),
    _reads(f"{ACCOUNT}/statement", ok=_both(200, 409)),
    _public("GET", "/.well-known/log-jwks.json", 200),
    _reads(f"{ACCOUNT}/bulk-operations/{{bulk_operation_id}}", "bulk_operation"),
    Rule("GET", f"{ACCOUNT}/quotes/{{symbol}}", ANY_ROLE, "intent:read", "intent:read", objects="symbol"),
    Rule("POST", f"{ACCOUNT}/refresh", ANY_ROLE, "intent:read", "intent:read", _both(202), objects="account"),
)
EVENTS = tuple(
    rule
    for listener in ("web", "events")
    for rule in (
        _reads(f"{ACCOUNT}/events", listener=listener),
        _reads(f"{ACCOUNT}/events/streams", listener=listener),
        Rule("POST", f"{ACCOUNT}/events/ticket", ANY_ROLE, "intent:read", "intent:read", _both(201), objects="account",
             any_environment=True, listener=listener),
    )
)  # fmt: skip
STREAM = (Rule("gRPC", "trading.TradingService/SubscribeEvents", ANY_ROLE, "intent:read", "intent:read",
               objects="account", any_environment=True, listener="grpc"),)  # fmt: skip
RULES: tuple[Rule, ...] = (*PAGES, *IDENTITY, *ACCOUNTS, *CONTROLS, *INTENT_RULES, *EVENTS, *STREAM)
