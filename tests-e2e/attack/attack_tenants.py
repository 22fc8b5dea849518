"""Three organizations that do not know each other, each marked in everything it owns, and how they are made."""

import json
import secrets
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from attack_http import Answer, HttpConnection, written
from attack_platform import Platform

from identity import model, usecases
from tip_local.identity_seed import ServiceAccount
from tip_testing.commands import Body, limit
from tip_testing.identity_fixtures import IdentityFixtures

TOKEN_SECONDS = 6 * 3600
SETTLE_SECONDS = 120.0
WAITING_SECONDS = 90.0
ENTITLEMENTS = ("controls_premium", "trading_live")
ENVIRONMENTS = ("paper", "live")
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
JSON = ("Content-Type", "application/json")
Headers = tuple[tuple[str, str], ...]


@dataclass
class Tenant:
    """An organization and all it owns. `canary` stands in every name, reason, label and subject."""

    name: str
    id: str
    external_id: str
    canary: str
    symbol: str
    entitlements: frozenset[str]
    tokens: Mapping[str, str] = field(repr=False)
    api_keys: Mapping[str, str] = field(repr=False)
    accounts: dict[str, str] = field(default_factory=dict)
    """By environment; those called `spare_...` are for what changes an account."""
    credentials: dict[str, str] = field(default_factory=dict)
    intents: dict[str, str] = field(default_factory=dict)
    bulk_operations: dict[str, str] = field(default_factory=dict)
    broker_secrets: dict[str, str] = field(default_factory=dict, repr=False)
    """What the credentials seal, by account."""
    key_id: str = ""
    invitation_id: str = ""
    cursors: dict[str, str] = field(default_factory=dict)
    """By path of a list: the cursor of its second page."""

    @property
    def marks(self) -> tuple[str, ...]:
        """What nobody else may ever see."""
        of_accounts = (*self.accounts.values(), *self.credentials.values(), *self.intents.values())
        ids = (*of_accounts, self.key_id, self.invitation_id, self.id)
        return (self.canary, self.symbol, *filter(None, ids))

    def subject(self, role: str) -> str:
        return f"{self.external_id}-{role.replace('_', '-')}"


def bearer(token: str, organization: str | None = None) -> Headers:
    named = (("x-organization-id", organization),) if organization else ()
    return (("Authorization", f"Bearer {token}"), *named)


def keyed(key: str) -> Headers:
    return (("x-api-key", key),)


class Builder:
    """Makes tenants: people and keys by identity's own use cases, everything else over the API."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.identity = IdentityFixtures(platform.signing_environment, token_lifetime_s=TOKEN_SECONDS)
        self.short = IdentityFixtures(platform.signing_environment, token_lifetime_s=-120)
        self.operator: ServiceAccount = self.identity.service_account()

    def close(self) -> None:
        self.identity.close()
        self.short.close()

    def call(self, method: str, path: str, headers: Headers, body: Any = None) -> Any:
        """What is answered. After many invented keys a new credential of the same address has to wait, and does."""
        deadline = time.monotonic() + WAITING_SECONDS
        while (answer := self.answer(method, path, headers, body)).status == 429 and time.monotonic() < deadline:
            time.sleep(int(answer.header("retry-after") or 1))
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.text[:300]}")
        return answer.json() if answer.body else None

    def answer(self, method: str, path: str, headers: Headers, body: Any = None) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        with HttpConnection(self.platform.web) as http:
            return http.exchange(written(method, path, (*headers, *((JSON,) if data else ())), data))

    def expired_key(self, tenant: Tenant, permissions: Iterable[str]) -> str:
        """Not over the API, which makes none that has ended."""
        new = model.NewApiKey("expired", "paper", tuple(permissions), datetime.now(UTC) - timedelta(minutes=1))
        return usecases.create_key(self.identity.deps, UUID(tenant.id), new)[1]

    def tenant(self, name: str, entitlements: Iterable[str] = ENTITLEMENTS, *, trades: bool = True) -> Tenant:
        canary = f"cnry{secrets.token_hex(5)}"
        made = self.identity.organization(f"{canary}-{name}", entitlements=entitlements)
        tenant = Tenant(name, str(made.id), made.external_id, canary, f"CN{secrets.token_hex(4).upper()}",
                        frozenset(entitlements), dict(made.tokens), made.api_keys)  # fmt: skip
        admin = bearer(tenant.tokens["admin"])
        for place in (*ENVIRONMENTS, *(f"spare_{environment}" for environment in ENVIRONMENTS)):
            self._account(tenant, admin, place)
        key = {"name": f"{canary} key", "environment": "paper", "permissions": ["intent:read"]}
        tenant.key_id = self.call("POST", "/v1/api-keys", admin, key)["id"]
        guest = {"subject": f"{canary}-guest", "role": "member"}
        tenant.invitation_id = self.call("POST", f"/v1/organizations/{tenant.id}/invitations", admin, guest)["id"]
        if "controls_premium" in tenant.entitlements:
            self._controls(tenant, admin)
        if trades:
            self._intents(tenant)
            self._cursors(tenant, admin)
        return tenant

    def _account(self, tenant: Tenant, admin: Headers, place: str) -> None:
        environment = place.removeprefix("spare_")
        body = {"name": f"{tenant.canary} {place}", "broker": "paper", "environment": environment}
        tenant.accounts[place] = made = self.call("POST", "/v1/accounts", admin, body)["id"]
        secret = {"key_id": f"PK{secrets.token_hex(6)}", "secret_key": f"{tenant.canary}{secrets.token_hex(12)}"}
        credential = {"label": f"{tenant.canary} label", "secret": secret}
        tenant.broker_secrets[place] = secret["secret_key"]
        tenant.credentials[place] = self.call("POST", f"/v1/accounts/{made}/credentials", admin, credential)["id"]

    def _controls(self, tenant: Tenant, admin: Headers) -> None:
        reason = f"{tenant.canary} reason"
        for place in ENVIRONMENTS:
            account = f"/v1/controls/accounts/{tenant.accounts[place]}"
            symbol = f"{account}/symbols/{tenant.symbol}"
            self.call("PUT", symbol, admin, {"manually_disabled": True, "manual_reason": reason})
            self.call("PATCH", f"{symbol}/time", admin, {"trading_start": "09:30:00", "stale_order_millis": 86_000_000})
            self.call("PUT", f"{symbol}/limits", admin, {"max_quantity": "7"})
            self.call("PUT", account, admin, {"trading_state": "ACTIVE", "reason": reason})
            self.call("PUT", f"{account}/limits", admin, {"max_quantity": "1000000"})
        self.call("PUT", "/v1/controls/organization", admin, {"trading_state": "ACTIVE", "reason": reason})

    def _intents(self, tenant: Tenant) -> None:
        for environment in ENVIRONMENTS:
            if environment == "live" and "trading_live" not in tenant.entitlements:
                continue
            path = f"/v1/accounts/{tenant.accounts[environment]}/intents"
            key = keyed(tenant.api_keys[environment])
            nothing = {"symbol": "NOTHING"}
            tenant.bulk_operations[environment] = self.call("POST", f"{path}/cancel", key, nothing)["id"]
            made = [self.call("POST", path, key, create()) for _ in range(2)]
            tenant.intents[environment] = made[0]["intent_id"]
            for intent in made:
                self.wait_for("ACCEPTED", f"{path}/{intent['intent_id']}", key)

    def wait_for(self, status: str, intent: str, key: Headers) -> None:
        """Until the intent at this path has the status."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while (found := self.call("GET", intent, key)["state"]["status"]) != status:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{intent} is {found} after {SETTLE_SECONDS:g} s")
            time.sleep(0.05)

    def _cursors(self, tenant: Tenant, admin: Headers) -> None:
        account = tenant.accounts["paper"]
        lists = ("/v1/accounts", f"/v1/accounts/{account}/intents", "/v1/api-keys",
                 f"/v1/organizations/{tenant.id}/memberships")  # fmt: skip
        for path in lists:
            tenant.cursors[path] = self.call("GET", f"{path}?limit=1", admin)["next_cursor"]


def create(symbol: str = "SIM.OPEN", quantity: str = "1") -> Body:
    """An order that stays open."""
    return limit(symbol, quantity, "1.00", time_in_force="GTC")


def invented(environment: str = "paper") -> str:
    """Thirty random characters under a good checksum, as the contract describes a key: well-formed and nobody's."""
    return with_checksum(f"tip_{environment}_" + "".join(secrets.choice(BASE62) for _ in range(30)))


def with_checksum(body: str) -> str:
    number, text = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        text = BASE62[digit] + text
    return body + text


def unknown_id() -> str:
    return str(uuid4())
