"""Bearer tokens: verifying a JWT without trusting anything it says about how it should be verified.

python-jose by default accepts tokens without `aud` or `exp`, ignores `kid` and lets odd errors escape. So the header
is checked here, one key is chosen by `kid`, every claim we rely on is required, and any error at all is a refusal.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from jose import jwk, jwt

from chassis import logs

log = logs.get(__name__)

ALGORITHMS = ("RS256", "ES256")
LEEWAY_S = 30
MAX_BYTES = 8 * 1024
_KEY_TYPES = {"RS256": "RSA", "ES256": "EC"}
_REFUSED_HEADERS = frozenset({"crit", "jku", "x5u", "jwk", "x5c", "zip", "enc"})


class BadToken(Exception):
    """The token proves nothing; the reason is for our logs, not for the caller."""


class KeysUnavailable(Exception):
    """No public key has ever been fetched, so nothing can be said about any token."""


class KeySource(Protocol):
    """Where public keys come from."""

    def find(self, kid: str) -> Mapping[str, Any] | None:
        """The public JWK with this id, or None."""


class Verifier:
    """Turns a token of one issuer into its claims."""

    def __init__(self, keys: KeySource, *, issuer: str, audience: str) -> None:
        self._keys, self._issuer, self._audience = keys, issuer, audience

    def claims(self, token: str) -> dict[str, Any]:
        try:
            return self._verified(token)
        except (BadToken, KeysUnavailable):
            raise
        except Exception as error:  # noqa: BLE001 - the library lets RecursionError, OverflowError and more escape
            raise BadToken(type(error).__name__) from None

    def _verified(self, token: str) -> dict[str, Any]:
        if len(token) > MAX_BYTES:
            raise BadToken("too long")
        header = jwt.get_unverified_header(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS or not isinstance(kid, str) or not 0 < len(kid) <= 128:
            raise BadToken("algorithm or key id")
        if _REFUSED_HEADERS & header.keys():
            raise BadToken("header")
        key = self._keys.find(kid)
        if key is None or key.get("kty") != _KEY_TYPES[algorithm]:
            raise BadToken("unknown key")
        options = {f"require_{claim}": True for claim in ("exp", "iat", "aud", "iss", "sub")} | {"leeway": LEEWAY_S}
        claims = jwt.decode(
            token,
            jwk.construct(dict(key), algorithm),
            algorithms=[algorithm],
            audience=self._audience,
            issuer=self._issuer,
            options=options,
        )
        _check_times(claims)
        return claims


def _check_times(claims: Mapping[str, Any]) -> None:
    for name in ("exp", "iat", "nbf"):
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise BadToken(f"{name} is not a time")
    if claims["iat"] > time.time() + LEEWAY_S:
        raise BadToken("issued in the future")
    if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
        raise BadToken("sub")


class CachedKeys:
    """Public keys, fetched as a set. An unknown `kid` refetches once per cooldown; a failed fetch keeps the old."""

    def __init__(
        self, fetch: Callable[[], Mapping[str, Mapping[str, Any]]], *, keep_s: float, cooldown_s: float
    ) -> None:
        self._fetch, self._keep_s, self._cooldown_s = fetch, keep_s, cooldown_s
        self._keys: Mapping[str, Mapping[str, Any]] = {}
        self._fetched_at = -math.inf
        self._lock = threading.Lock()

    def find(self, kid: str) -> Mapping[str, Any] | None:
        age = time.monotonic() - self._fetched_at
        if age > self._keep_s or (kid not in self._keys and age > self._cooldown_s):
            self._refresh()
        return self._keys.get(kid)

    def _refresh(self) -> None:
        with self._lock:
            if time.monotonic() - self._fetched_at <= self._cooldown_s:
                return  # another thread has just done it
            # Set before the fetch: a provider that is down is not asked again by every request.
            self._fetched_at = time.monotonic()
            try:
                self._keys = self._fetch()
            except Exception as error:
                log.warning("public_keys_not_fetched", error=type(error).__name__)
                if not self._keys:
                    raise KeysUnavailable from error
