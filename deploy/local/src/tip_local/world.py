"""Organizations, people and keys made directly through identity, for demo data and for every suite's tests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from identity import model, usecases
from identity.app import dependencies
from identity.config import Config

ROLES = ("admin", "member", "read_only")
READ_PERMISSIONS = tuple(permission for permission in model.PERMISSIONS if permission.endswith(":read"))


@dataclass(frozen=True)
class Organization:
    """An organization with a user of every role and a few keys, and the credentials of all of them."""

    id: UUID
    external_id: str
    provider: str
    tokens: Mapping[str, str] = field(repr=False)
    api_keys: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class ServiceAccount:
    client_id: str
    client_secret: str = field(repr=False)
    token: str = field(repr=False)


class World:
    """Makes things in identity, with identity's own use cases."""

    def __init__(self, environment: Mapping[str, str], *, token_lifetime_s: int = 3600) -> None:
        config = Config.from_env(environment)
        self.deps = dependencies(config)
        self.provider = config.identity_provider
        self._lifetime_s = token_lifetime_s

    def organization(self, external_id: str | None = None, *, entitlements: Iterable[str] = ()) -> Organization:
        external_id = external_id or f"org-{uuid4().hex[:12]}"
        made = usecases.create_organization(self.deps, self.provider, external_id, external_id.capitalize())
        for name in entitlements:
            usecases.put_entitlement(self.deps, made.id, name)
        for role in ROLES:
            usecases.put_member(self.deps, made, self.subject(external_id, role), role)
        api_keys = {
            "paper": self.key(made.id, "paper"),
            "live": self.key(made.id, "live"),
            "paper_read_only": self.key(made.id, "paper", READ_PERMISSIONS),
        }
        return Organization(made.id, external_id, self.provider, self.tokens(external_id), api_keys)

    def tokens(self, external_id: str) -> dict[str, str]:
        return {role: self.user_token(self.subject(external_id, role), external_id, role) for role in ROLES}

    def subject(self, external_id: str, role: str) -> str:
        return f"{external_id}-{role.replace('_', '-')}"

    def key(self, organization_id: UUID, environment: str, permissions: Iterable[str] = model.PERMISSIONS) -> str:
        new = model.NewApiKey(f"{environment} key", environment, tuple(permissions))
        return usecases.create_key(self.deps, organization_id, new)[1]

    def user_token(self, subject: str, external_id: str | None = None, role: str | None = None) -> str:
        claims = {"sub": subject, "principal_type": "user", "org_id": external_id, "org_role": role}
        stated = {name: value for name, value in claims.items() if value is not None}
        return usecases.issue_token(self.deps, stated, lifetime_s=self._lifetime_s)

    def user_without_organization(self, subject: str | None = None) -> str:
        subject = subject or f"user-{uuid4().hex[:12]}"
        usecases.put_user(self.deps, self.provider, subject)
        return self.user_token(subject)

    def service_account(self, scopes: Iterable[str] = model.SCOPES) -> ServiceAccount:
        account, secret = usecases.create_service_account(self.deps, "service account", tuple(scopes))
        return ServiceAccount(account.client_id, secret, self.service_token(account.client_id, account.scopes))

    def service_token(self, client_id: str, scopes: Iterable[str]) -> str:
        claims = {"sub": client_id, "principal_type": "service_account", "scope": " ".join(scopes)}
        return usecases.issue_token(self.deps, claims, lifetime_s=self._lifetime_s)

    def close(self) -> None:
        self.deps.engine.dispose()
