"""Who is calling, and what a route says about who may."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self
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
class Bounds:
    """What an API key is restricted to beyond its permissions; None restricts nothing."""

    accounts: frozenset[UUID] | None = None
    symbols: frozenset[str] | None = None
    max_notional_per_day: Decimal | None = None

    @classmethod
    def from_json(cls, bounds: Mapping[str, Any] | None) -> Self:
        """As identity publishes them: what is absent is not restricted."""
        if bounds is None:
            return cls()
        accounts, symbols, most = (bounds.get(name) for name in ("accounts", "symbols", "max_notional_per_day"))
        return cls(
            None if accounts is None else frozenset(map(UUID, accounts)),
            None if symbols is None else frozenset(symbols),
            None if most is None else Decimal(most),
        )


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
    names_organization: bool = False
    """Whether a user's token names an organization, be it theirs or not."""
    bounds: Bounds = Bounds()

    def sees(self, account_id: UUID) -> bool:
        """Whether an account of the organization is there for the caller at all: the one home of that rule."""
        return self.bounds.accounts is None or account_id in self.bounds.accounts


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


@dataclass(frozen=True)
class Users:
    """The issuer of users' tokens, and the claims with organization and role. Without an issuer we issue them."""

    issuer: str = ""
    organization_claim: str = "org_id"
    role_claim: str = "org_role"
    roles: Mapping[str, str] = field(default_factory=dict)
    """Their words for our roles; empty means that they use ours."""

    def organization(self, claims: Mapping[str, Any]) -> Any:
        return _inside(claims, self.organization_claim)

    def role(self, claims: Mapping[str, Any]) -> Role | None:
        """The strongest role the claim holds that we know."""
        held = _inside(claims, self.role_claim)
        words = [word for word in (held if isinstance(held, list) else [held]) if isinstance(word, str)]
        names = {self.roles.get(word) if self.roles else word for word in words}
        return next((role for role in Role if role.value in names), None)


def _inside(claims: Mapping[str, Any], path: str) -> Any:
    """The claim of that name, else the nested one that its dots lead to."""
    if path in claims:
        return claims[path]
    first, _, rest = path.partition(".")
    inner = claims.get(first)
    return _inside(inner, rest) if rest and isinstance(inner, dict) else None


def who_may(alternatives: tuple[Alternative, ...]) -> str:
    """For people to read, in refusals and in the document of the API."""
    return "Who may call: " + "; ".join(alternative.describes for alternative in alternatives) + "."


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
