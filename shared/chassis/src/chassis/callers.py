"""Whose request it is, as far as the event loop can say: before a thread works on it, and without the database.

A credential that was verified once is recognised by its digest, so its requests count against its organization from
then on. Any other is unverified: its first request is authenticated at the expense of its address and then begins anew
as its organization's, and an address whose credentials are refused again and again has to wait. Nobody is let in here,
and nobody shut out who is verified: every request is still authenticated.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, NamedTuple

from chassis.lru_cache import LruCache
from chassis.presence import OwnPresence, Presence
from chassis.principals import Kind, Principal

_CAPACITY = 10_000
_WINDOW_S = 60.0

RawHeaders = Iterable[tuple[bytes, bytes]]


class Trust(StrEnum):
    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    ANONYMOUS = "anonymous"
    """No credential at all: health, discovery, tokens, and requests that lack one."""


class Reclassified(BaseException):
    """A request was authenticated as a caller it was not queued for, and must be queued again as theirs.

    Not an error that an app answers: like a cancellation it passes through every handler.
    """


class Caller(NamedTuple):
    """Against whom a request counts. `tenant` is the organization, or the address of one that is not verified.

    Of a verified API key it is also whose rows a submit may touch.
    """

    trust: Trust
    tenant: str
    principal: str


class Callers:
    """What one process knows of its callers. For one thread: the event loop's."""

    def __init__(
        self,
        *,
        trusted_proxies: int = 0,
        refused_per_minute: int = 600,
        clock: Callable[[], float] = time.monotonic,
        presence: Presence[str] | None = None,
    ) -> None:
        self._trusted_proxies, self._refused_per_minute, self._clock = trusted_proxies, refused_per_minute, clock
        self._verified_callers: LruCache[bytes, Caller] = LruCache(_CAPACITY)
        self._refusals: LruCache[str, tuple[float, float]] = LruCache(_CAPACITY)
        self._verified_tenants: Presence[str] = presence or OwnPresence[str](clock)

    def classify(self, scope: Mapping[str, Any]) -> "CredentialCheck":
        """The caller of an ASGI request."""
        credentials, forwarded = b"", b""
        for name, value in scope["headers"]:
            if name == b"x-api-key":
                credentials += b"x-api-key:" + value + b"\n"
            elif name == b"authorization":
                # As `access` reads it: if one token had many digests, it could fill the memory meant for all.
                scheme, token = split_authorization(value.decode("latin-1"))
                credentials += f"authorization:{scheme} {token}\n".encode("latin-1")
            elif name == b"x-forwarded-for":
                forwarded += (b"," if forwarded else b"") + value
        digest = hashlib.sha256(credentials).digest()
        verified = self._verified_callers.get(digest)
        if verified:
            self._verified_callers.move_to_end(digest)
            self._verified_tenants.note(verified.tenant)
            return CredentialCheck(digest, verified)
        address = self._address(scope, forwarded)
        trust = Trust.UNVERIFIED if credentials else Trust.ANONYMOUS
        return CredentialCheck(digest, Caller(trust, address, address))

    def settle(self, check: "CredentialCheck") -> None:
        """Record whether the credential was verified or refused."""
        if check.principal:
            check.caller = _verified(check.principal)
            self._verified_callers.put(check.digest, check.caller)
        elif check.refused and not self._verified_callers.pop(check.digest, None):
            address = check.caller.tenant
            self._refusals.put(address, (self._refusals_of(address) + 1, self._clock()))

    def must_wait(self, caller: Caller) -> bool:
        """Whether so many credentials from this address were refused that no further one is checked now."""
        return caller.trust is Trust.UNVERIFIED and self._refusals_of(caller.tenant) >= self._refused_per_minute

    def is_alone(self, caller: Caller) -> bool:
        """Whether no other tenant has sent a request within the last second."""
        return self._verified_tenants.is_alone(caller.tenant)

    def _refusals_of(self, address: str) -> float:
        """A leaky bucket: it empties at as many a minute as it holds."""
        level, at = self._refusals.get(address, (0.0, 0.0))
        return max(0.0, level - (self._clock() - at) * self._refused_per_minute / _WINDOW_S)

    def _address(self, scope: Mapping[str, Any], forwarded: bytes) -> str:
        """As the app sees it (ProxyFix): of a forwarded address only what our own proxies have added is trusted."""
        if self._trusted_proxies and forwarded:
            named = [part.strip() for part in forwarded.decode("latin-1").split(",")]
            if len(named) >= self._trusted_proxies:
                return named[-self._trusted_proxies]
        return (scope["client"] or ("", 0))[0]


def split_authorization(value: str) -> tuple[str, str]:
    """Scheme, in lower case, and credential of an Authorization header; blanks around the latter do not count."""
    scheme, _, credential = value.partition(" ")
    return scheme.lower(), credential.strip(" \t")


class CredentialCheck:
    """A request's credential, and the result of its authentication in a thread."""

    __slots__ = ("caller", "digest", "leaves_room", "principal", "refused")

    def __init__(self, digest: bytes, caller: Caller) -> None:
        self.digest, self.caller = digest, caller
        self.principal: Principal | None = None
        self.refused = False
        self.leaves_room = False
        """Whether the request has waited for a thread while other tenants were there."""

    def verify(self, principal: Principal) -> None:
        """Record whose credential it is. Raises Reclassified if the request was queued for another caller."""
        self.principal = principal
        if self.caller.trust is not Trust.VERIFIED:
            raise Reclassified

    def refuse(self) -> None:
        self.principal, self.refused = None, True


credential_check: ContextVar[CredentialCheck | None] = ContextVar("credential_check", default=None)
"""The check of the request that this thread works on; the thread that authenticates the request reports to it."""


def leaves_room() -> bool:
    """Whether long work is to leave room for others: its tenant is not alone, and it had to wait for a thread."""
    check = credential_check.get()
    return check is not None and check.leaves_room


def _verified(principal: Principal) -> Caller:
    """A service account may act for any organization, so it is a tenant by itself."""
    name = f"{principal.kind}:{principal.id}"
    of_nobody = principal.kind is Kind.SERVICE_ACCOUNT or principal.organization_id is None
    return Caller(Trust.VERIFIED, name if of_nobody else str(principal.organization_id), name)
