"""Organizations, people and keys made directly through identity, for the demo data and for operators' tokens."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID, uuid4

from sqlalchemy import Connection, text

from chassis.principals import Kind, Principal
from identity import model, model_login, usecases
from identity.app import dependencies
from identity.config import Config
from identity.usecases import grants, passwords

OPERATOR = Principal(Kind.SERVICE_ACCOUNT, "seeding")
ROLES = ("admin", "member", "read_only")
READ_PERMISSIONS = tuple(permission for permission in model.PERMISSIONS if permission.endswith(":read"))


@dataclass(frozen=True)
class ServiceAccount:
    client_id: str
    client_secret: str = field(repr=False)
    token: str = field(repr=False)


class IdentitySeed:
    """Makes things in identity, with identity's own use cases."""

    def __init__(self, environment: Mapping[str, str], *, token_lifetime_s: int = 3600) -> None:
        config = Config.from_env(environment)
        self.deps = dependencies(config)
        self.provider = config.identity_provider
        self._lifetime_s = token_lifetime_s

    def ensure_organization(
        self, external_id: str, organization_id: UUID, entitlements: Iterable[str]
    ) -> dict[str, str]:
        """The organization with its members and entitlements, made if it is not there yet; tokens of the members."""
        name = external_id.capitalize()
        try:
            made = usecases.create_organization(
                self.deps, self.provider, external_id, name, organization_id=organization_id
            )
        except model.OrganizationExists:
            made = usecases.get_organization(self.deps, OPERATOR, organization_id)
        for entitlement in entitlements:
            usecases.put_entitlement(self.deps, made.id, entitlement)
        return {role: self.user_token(self._ensure_member(made, role), external_id, role) for role in ROLES}

    def _ensure_member(self, organization: model.Organization, role: str) -> str:
        subject = usual = self.subject(organization.external_id, role)
        for number in count(2):
            try:
                usecases.put_member(self.deps, organization, subject, role)
                break
            except model.UserDeleted:  # somebody tried DELETE /v1/users/me with a demo token: that one is gone for good
                subject = f"{usual}-{number}"
        return subject

    def put_console(self, redirect_uri: str) -> None:
        """Let people sign in at the console; with a provider of their own they do it there."""
        if not self.deps.provider.vouches:
            grants.put_client(self.deps, model_login.Client("console", "The console", (redirect_uri,)))

    def ensure_login(self, email: str, organization_id: UUID, kept: Mapping[str, str]) -> dict[str, str]:
        """Somebody with a password: the one kept from earlier if it still opens, else a new one."""
        if self.deps.provider.vouches:
            return {}
        if kept.get("email") == email and self._opens(email, kept.get("password", "")):
            return dict(kept)
        usecases.change_member(self.deps, None, organization_id, email, model.ADMIN)
        password = secrets.token_urlsafe(12)
        with self.deps.engine.begin() as tx:
            code = passwords.issue_one_time_code(self.deps, tx, email)
        passwords.set_password(self.deps, email, code, password)
        return {"email": email, "password": password}

    def _opens(self, email: str, password: str) -> bool:
        try:
            passwords.verify_password(self.deps, email, password)
        except model_login.SignInRefused:
            return False
        return True

    def ensure_keys(self, organization_id: UUID, kept: Mapping[str, str]) -> dict[str, str]:
        """The usual keys of an organization: those kept from earlier that still work, new ones for the rest."""
        permissions = {"paper": model.PERMISSIONS, "live": model.PERMISSIONS, "paper_read_only": READ_PERMISSIONS}
        return {
            name: kept[name]
            if self._works(kept.get(name))
            else self.key(organization_id, name.split("_")[0], permissions[name])
            for name in permissions
        }

    def _works(self, key: str | None) -> bool:
        try:
            return not usecases.validate_key(self.deps, key or "").disabled
        except model.UnknownKey:
            return False

    def ensure_service_account(self, kept: Mapping[str, str], scopes: Iterable[str] | None) -> ServiceAccount:
        """The service account kept from earlier with a new token, or a new one. `scopes` None means all."""
        scopes = model.SCOPES if scopes is None else tuple(scopes)
        try:
            known = usecases.get_service_account(self.deps, kept.get("client_id", ""))
        except model.NotFound:
            return self.service_account(scopes)
        return ServiceAccount(known.client_id, kept["client_secret"], self.service_token(known.client_id, scopes))

    def tokens(self, external_id: str) -> dict[str, str]:
        return {role: self.user_token(self.subject(external_id, role), external_id, role) for role in ROLES}

    def subject(self, external_id: str, role: str) -> str:
        return f"{external_id}-{role.replace('_', '-')}"

    def key(
        self,
        organization_id: UUID,
        environment: str,
        permissions: Iterable[str] = model.PERMISSIONS,
        bounds: model.Bounds | None = None,
    ) -> str:
        new = model.NewApiKey(f"{environment} key", environment, tuple(permissions), bounds=bounds)
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


_ADD_ACCOUNT = text("""
    INSERT INTO accounts.account (id, organization_id, name, broker, environment, time_zone)
    VALUES (:id, :organization_id, :name, :broker, :environment, :time_zone)
    ON CONFLICT (id) DO NOTHING
""")


def add_account(
    admin: Connection,
    organization_id: UUID,
    environment: str = "paper",
    broker: str = "paper",
    time_zone: str = "UTC",
    account_id: UUID | None = None,
) -> UUID:
    """A trading account written straight into its table, for suites of services that only read accounts."""
    account_id = account_id or uuid4()
    values = {"organization_id": organization_id, "broker": broker, "environment": environment}
    admin.execute(_ADD_ACCOUNT, values | {"id": account_id, "name": f"{environment} account", "time_zone": time_zone})
    return account_id
