"""Bearer tokens: verifying a JWT without trusting anything it says about how it should be verified.

python-jose by default accepts tokens without `aud` or `exp`, ignores `kid` and lets odd errors escape. So the header
is checked here, one key is chosen by `kid`, every claim we rely on is required, and any error at all is a refusal.
"""

import base64
import hashlib
import hmac
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from jose import jwk, jwt

from chassis import logs

log = logs.get(__name__)

ALGORITHMS = ("RS256", "ES256")
LEEWAY_S = 30
MAX_BYTES = 8 * 1024
_REMEMBERED_TOKENS = 4_096
_REMEMBERED_BYTES = 2 * 1024  # longer tokens are verified every time, so that memory stays bounded
_KEY_TYPES = {"RS256": "RSA", "ES256": "EC"}
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_REFUSED_HEADERS = frozenset({"crit", "jku", "x5u", "jwk", "x5c", "zip", "enc"})


class BadToken(Exception):
    """The token proves nothing; the reason is for our logs, not for the caller."""


class KeysUnavailable(Exception):
    """No public key was ever fetched, or none of this id and the next try is under way: no token can be judged yet."""


class KeySource(Protocol):
    """Where public keys come from."""

    def find(self, kid: str) -> Mapping[str, Any] | None:
        """The public JWK with this id, or None; fetched if need be."""

    def cached(self, kid: str) -> Mapping[str, Any] | None:
        """The same from the keys already fetched: never waits for a fetch."""


@dataclass(frozen=True)
class VerifiedToken:
    """A token whose signature was verified, and with which key."""

    digest: bytes = field(repr=False)
    claims: Mapping[str, Any]
    kid: str
    key: Mapping[str, Any]


class Verifies(Protocol):
    """What verifies tokens, or raises BadToken."""

    def verify(self, token: str) -> VerifiedToken: ...

    def claims(self, token: str) -> dict[str, Any]: ...

    def is_current(self, verified: VerifiedToken) -> bool: ...


class Verifier:
    """Verifies the tokens of one issuer: each signature once, for as long as its key is published."""

    def __init__(self, keys: KeySource, *, issuer: str, audience: str) -> None:
        self._keys, self.issuer, self._audience = keys, issuer, audience
        self._remembered = _RememberedTokens()

    def claims(self, token: str) -> dict[str, Any]:
        return dict(self.verify(token).claims)

    def verify(self, token: str) -> VerifiedToken:
        with _any_error_refuses():
            if len(token) > MAX_BYTES:
                raise BadToken("form")
            digest = hashlib.sha256(token.encode()).digest()
            remembered = self._remembered.get(digest)
            if remembered is not None and self._keys.find(remembered.kid) == remembered.key:
                _check_expiry(remembered.claims)
                return remembered
            verified = self._verify_signature(token, digest)
            if len(token) <= _REMEMBERED_BYTES:
                self._remembered.add(verified)
            return verified

    def is_current(self, verified: VerifiedToken) -> bool:
        """Whether the key that signed is still published, by the keys already fetched. Expiry is left to the caller."""
        return self._keys.cached(verified.kid) == verified.key

    def _verify_signature(self, token: str, digest: bytes) -> VerifiedToken:
        _check_form(token)
        header = jwt.get_unverified_header(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS or not isinstance(kid, str) or not 0 < len(kid) <= 128:
            raise BadToken("algorithm or key id")
        if _REFUSED_HEADERS & header.keys() or str(header.get("typ", "JWT")).lower() not in _TYPES:
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
            issuer=self.issuer,
            options=options,
        )
        _check_times(claims)
        return VerifiedToken(digest, claims, kid, key)


class _RememberedTokens:
    """The tokens verified last, by digest. Only good ones are here, so forged ones displace none."""

    def __init__(self) -> None:
        self._by_digest: OrderedDict[bytes, VerifiedToken] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, digest: bytes) -> VerifiedToken | None:
        with self._lock:
            found = self._by_digest.get(digest)
            if found is not None:
                self._by_digest.move_to_end(digest)
            return found

    def add(self, verified: VerifiedToken) -> None:
        with self._lock:
            self._by_digest[verified.digest] = verified
            if len(self._by_digest) > _REMEMBERED_TOKENS:
                self._by_digest.popitem(last=False)


class Verifiers:
    """Several issuers: the token says whose it is, and then has to prove it to that one's verifier."""

    def __init__(self, *verifiers: Verifier) -> None:
        self._by_issuer = {verifier.issuer: verifier for verifier in verifiers}

    def claims(self, token: str) -> dict[str, Any]:
        return dict(self.verify(token).claims)

    def verify(self, token: str) -> VerifiedToken:
        with _any_error_refuses():
            _check_form(token)
            verifier = self._by_issuer.get(str(jwt.get_unverified_claims(token).get("iss")))
            if verifier is None:
                raise BadToken("issuer")
            return verifier.verify(token)

    def is_current(self, verified: VerifiedToken) -> bool:
        return self._by_issuer[verified.claims["iss"]].is_current(verified)


@contextmanager
def _any_error_refuses() -> Iterator[None]:
    try:
        yield
    except (BadToken, KeysUnavailable):
        raise
    except Exception as error:  # noqa: BLE001 - the library lets RecursionError, OverflowError and more escape
        raise BadToken(type(error).__name__) from None


def _check_form(token: str) -> None:
    """Three parts of base64url, and the last in its only form: else one signature could be written in many ways."""
    if len(token) > MAX_BYTES or not _FORM.fullmatch(token):
        raise BadToken("form")
    signature = token.rpartition(".")[2]
    raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    if not hmac.compare_digest(base64.urlsafe_b64encode(raw).decode().rstrip("="), signature):
        raise BadToken("form")


def _check_times(claims: Mapping[str, Any]) -> None:
    for name in ("exp", "iat", "nbf"):
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise BadToken(f"{name} is not a time")
    if claims["iat"] > time.time() + LEEWAY_S:
        raise BadToken("issued in the future")
    if not is_name(claims["sub"]):
        raise BadToken("sub")


def _check_expiry(claims: Mapping[str, Any]) -> None:
    """The check that depends on the time, repeated for remembered tokens."""
    if claims["exp"] < time.time() - LEEWAY_S:
        raise BadToken("expired")


def is_name(value: Any) -> bool:
    """Whether a claim can be somebody's or something's id: text that a database takes and a log shows."""
    # U+FFFD is what bytes that are no text become on the way here, and then two names would be one.
    return isinstance(value, str) and 0 < len(value) <= 255 and value.isprintable() and "\ufffd" not in value


class CachedKeys:
    """Public keys, fetched as a set. An unknown `kid` refetches once per cooldown; a failed fetch keeps the old."""

    def __init__(
        self, fetch: Callable[[], Mapping[str, Mapping[str, Any]]], *, keep_s: float, cooldown_s: float
    ) -> None:
        self._fetch, self._keep_s, self._cooldown_s = fetch, keep_s, cooldown_s
        self._keys: Mapping[str, Mapping[str, Any]] = {}
        self._fetched_at = -math.inf
        self._failed = False
        self._lock = threading.Lock()

    def find(self, kid: str) -> Mapping[str, Any] | None:
        if kid not in self._keys:
            # After a failure nobody waits for the next try: a source that hangs must not hang every thread of ours.
            if not self._refresh(wait=not self._failed):
                raise KeysUnavailable
        elif time.monotonic() - self._fetched_at > self._keep_s:
            self._refresh(wait=False)
        if not self._keys and self._failed:
            raise KeysUnavailable
        return self._keys.get(kid)

    def cached(self, kid: str) -> Mapping[str, Any] | None:
        """From the keys already fetched; a set that is too old is fetched by a thread of its own."""
        if time.monotonic() - self._fetched_at > self._keep_s and not self._lock.locked():
            threading.Thread(target=self._refresh, kwargs={"wait": False}, name="public-keys", daemon=True).start()
        return self._keys.get(kid)

    def _refresh(self, *, wait: bool) -> bool:
        """Whether the keys are as fresh as the cooldown allows; False while another thread fetches, unless `wait`."""
        # A caller whose key is cached goes on with it while another thread fetches; any other waits.
        if not self._lock.acquire(blocking=wait):
            return False
        try:
            if time.monotonic() - self._fetched_at > self._cooldown_s:
                self._fetch_now()
        finally:
            self._lock.release()
        return True

    def _fetch_now(self) -> None:
        try:
            self._keys = self._fetch()
            self._failed = False
        except Exception as error:  # noqa: BLE001 - whatever it is, the old keys are better than none
            log.warning("public_keys_not_fetched", error=type(error).__name__)
            self._failed = True
        # A provider that is down is not queried again by every request either.
        self._fetched_at = time.monotonic()
