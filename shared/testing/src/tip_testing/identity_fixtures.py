"""An organization with everybody who may call in its name, for the tests of every service."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from uuid import UUID, uuid4

from identity import usecases
from tip_local.identity_seed import READ_PERMISSIONS, ROLES, IdentitySeed


@dataclass(frozen=True)
class Organization:
    """An organization with a user of every role and a few keys, and the credentials of all of them."""

    id: UUID
    external_id: str
    provider: str
    tokens: Mapping[str, str] = field(repr=False)
    api_keys: Mapping[str, str] = field(repr=False)


class SignedWhenRead(Mapping[str, str]):
    """A token of each role. A signature takes longer than a request, and few tests need all of them."""

    def __init__(self, sign: Callable[[str], str]) -> None:
        self._signed = cache(sign)

    def __getitem__(self, role: str) -> str:
        if role not in ROLES:
            raise KeyError(role)
        return self._signed(role)

    def __iter__(self) -> Iterator[str]:
        return iter(ROLES)

    def __len__(self) -> int:
        return len(ROLES)


class IdentityFixtures(IdentitySeed):
    """Makes organizations, people and keys with identity's own use cases."""

    def organization(self, external_id: str | None = None, *, entitlements: Iterable[str] = ()) -> Organization:
        external_id = external_id or f"org-{uuid4().hex[:12]}"
        made = usecases.create_organization(self.deps, self.provider, external_id, external_id.capitalize())
        for name in entitlements:
            usecases.put_entitlement(self.deps, made.id, name)
        for role in ROLES:
            usecases.put_member(self.deps, made, self.subject(external_id, role), role)
        tokens = SignedWhenRead(lambda role: self.user_token(self.subject(external_id, role), external_id, role))
        return Organization(made.id, external_id, self.provider, tokens, self._usual_keys(made.id))

    def _usual_keys(self, organization_id: UUID) -> dict[str, str]:
        return {
            "paper": self.key(organization_id, "paper"),
            "live": self.key(organization_id, "live"),
            "paper_read_only": self.key(organization_id, "paper", READ_PERMISSIONS),
        }
