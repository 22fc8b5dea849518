"""Who is calling, and what a route says about who may."""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID


class Kind(StrEnum):
    USER = "user"
    SERVICE_ACCOUNT = "service_account"
    API_KEY = "api_key"


class Role(StrEnum):
    ADMIN = "admin"
    MEMBER = "member"
    READ_ONLY = "read_only"


@dataclass(frozen=True)
class Principal:
    """An authenticated caller. `grants` are an API key's permissions or a service account's scopes."""

    kind: Kind
    id: str
    organization_id: UUID | None = None
    role: Role | None = None
    environment: str | None = None
    grants: frozenset[str] = frozenset()
    entitlements: frozenset[str] = frozenset()
    provider: str | None = None
    user_id: UUID | None = None


@dataclass(frozen=True)
class Alternative:
    """One kind of caller a route accepts."""

    kind: Kind
    roles: frozenset[Role] = frozenset()
    grant: str | None = None
    organization: bool = True
    describes: str = field(default="", compare=False)

    def admits(self, principal: Principal) -> bool:
        if principal.kind is not self.kind:
            return False
        if self.roles and principal.role not in self.roles:
            return False
        return self.grant is None or self.grant in principal.grants


ANY_ROLE = (Role.ADMIN, Role.MEMBER, Role.READ_ONLY)


def user(*roles: Role, organization: bool = True) -> Alternative:
    """A user with one of the roles in the organization of the token."""
    words = " or ".join(role.value for role in roles)
    return Alternative(Kind.USER, frozenset(roles), None, organization, f"user ({words})" if words else "user")


def api_key(permission: str | None = None) -> Alternative:
    """An API key that holds the permission."""
    return Alternative(
        Kind.API_KEY, frozenset(), permission, True, f"API key with `{permission}`" if permission else "API key"
    )


def service_account(scope: str | None = None, *, organization: bool = True) -> Alternative:
    """A service account whose token has the scope; with `organization` it names one by x-organization-id."""
    words = f"service account with `{scope}`" if scope else "service account"
    header = " and `x-organization-id`" if organization else ""
    return Alternative(Kind.SERVICE_ACCOUNT, frozenset(), scope, organization, words + header)
