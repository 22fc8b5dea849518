"""What fuzzed requests are aimed at: documented operations, callers of every kind, and objects that may be lost."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from attack_endpoints import document
from attack_platform import Platform
from attack_tenants import Builder, Headers, Tenant, bearer, create, keyed

# The first two would take the callers away, the third every account.
LEFT_OUT = frozenset(
    {
        ("delete", "/v1/users/me"),
        ("delete", "/v1/users/me/memberships/{organization_id}"),
        ("delete", "/v1/accounts/{account_id}"),
    }
)
TO_LOSE = 24
"""Keys, credentials and service accounts made for the deletions of one slice of requests."""
SCOPES = ("account:read", "account:write", "credential:read", "credential:write", "intent:read", "control:read",
          "control:write", "organization:read", "api-key:write")  # fmt: skip


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    parameters: list[dict[str, Any]]
    body: dict[str, Any] | None
    media_type: str
    schemes: tuple[str, ...]
    """Of the credentials that the document says it takes."""


@dataclass(frozen=True)
class FuzzTargets:
    """All that a process of requests needs to know."""

    web: tuple[str, int]
    operations: list[Operation]
    schemas: dict[str, Any]
    credentials: dict[str, list[Headers]]
    """By the document's name of the scheme."""
    ids: dict[str, list[str]]
    """By name of a path parameter: what may stand there and is known."""
    seed: int
    ids_of: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """The same for what belongs to an account, by account."""
    scratch_organization: str = ""
    """For what would take something from the callers' own."""

    def known(self, operation: Operation, name: str, account_id: str) -> list[str]:
        if name == "organization_id" and (operation.method == "PATCH" or "/entitlements" in operation.path):
            return [self.scratch_organization]
        return self.ids_of.get(account_id, {}).get(name) or self.ids.get(name, ["word"])


def operations(found: dict[str, Any]) -> Iterator[Operation]:
    """All that the web port serves, but for those left out."""
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            if (method, path) in LEFT_OUT or path.endswith("/events"):  # whose answer does not end
                continue
            content = operation.get("requestBody", {}).get("content", {})
            media_type = next(iter(content), "")
            body = content[media_type]["schema"] if content else None
            schemes = tuple(name for requirement in operation.get("security", []) for name in requirement)
            yield Operation(method.upper(), path, operation.get("parameters", []), body, media_type, schemes)


class Arsenal:
    """Makes targets, as often as the old ones are worn out."""

    def __init__(self, platform: Platform, builder: Builder, seed: int) -> None:
        self._platform, self._builder, self._seed = platform, builder, seed
        self._document = document(platform.web)
        self._operations = list(operations(self._document))
        self._clients = [builder.identity.service_account(SCOPES), builder.operator]

    def targets(self) -> FuzzTargets:
        tenant = self._builder.tenant("fuzzed", trades=False)
        scratch = self._builder.identity.organization(f"{tenant.canary}-scratch")
        admin = bearer(tenant.tokens["admin"])
        credentials = {
            "apiKey": [keyed(tenant.api_keys[name]) for name in ("paper", "paper", "live")],
            "bearer": [admin, admin, admin, bearer(tenant.tokens["member"])],
            "clientCredentials": [bearer(client.token, tenant.id) for client in self._clients],
        }
        own = {place: tenant.accounts[place] for place in ("paper", "spare_paper", "live")}
        return FuzzTargets(
            self._platform.web,
            self._operations,
            self._document["components"]["schemas"],
            credentials,
            self._ids(tenant, [*own.values()], str(scratch.id)),
            self._seed,
            {account: self._ids_of(tenant, place, account) for place, account in own.items()},
            str(scratch.id),
        )

    def _ids(self, tenant: Tenant, accounts: list[str], scratch: str) -> dict[str, list[str]]:
        call, identity, admin = self._builder.call, self._builder.identity, bearer(tenant.tokens["admin"])
        key = {"name": "to be lost", "environment": "paper", "permissions": ["intent:read"]}
        subject = f"{tenant.canary}-somebody"
        call("PUT", f"/v1/organizations/{tenant.id}/memberships/{subject}", admin, {"role": "member"})
        return {
            "account_id": accounts,
            "symbol": ["AAPL", "SIM.OPEN", "aapl", tenant.symbol, "BTC%2FUSD"],
            "organization_id": [tenant.id, tenant.id, scratch],
            "subject": [subject, subject, tenant.subject("read_only"), "a%2Fb"],
            "key_id": [call("POST", "/v1/api-keys", admin, key)["id"] for _ in range(TO_LOSE)],
            "invitation_id": [tenant.invitation_id],
            "client_id": [identity.service_account(("account:read",)).client_id for _ in range(TO_LOSE)],
            "name": ["controls_premium", "trading_live"],
            "provider": ["local"],
            "provider_id": [tenant.external_id],
        }

    def _ids_of(self, tenant: Tenant, place: str, account: str) -> dict[str, list[str]]:
        call, admin = self._builder.call, bearer(tenant.tokens["admin"])
        key = keyed(tenant.api_keys["live" if place == "live" else "paper"])
        path = f"/v1/accounts/{account}"
        pair = {"label": "to be lost", "secret": {"key_id": "PKlost", "secret_key": "lost-lost-lost-lost"}}
        return {
            "credential_id": [
                call("POST", f"{path}/credentials", admin, pair)["id"] for _ in range(max(1, TO_LOSE // 3))
            ],
            "intent_id": [call("POST", f"{path}/intents", key, create())["intent_id"] for _ in range(2)],
            "bulk_operation_id": [call("POST", f"{path}/intents/cancel", key, {"symbol": "NOTHING"})["id"]],
        }
