"""Sessions in Redis, sealed under a key that is made of the cookie and of the platform's own.

Who reads Redis lacks both halves, who reads a cookie in a log lacks Redis, and who writes to Redis cannot make one up.
"""

import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from redis import BlockingConnectionPool, Redis
from redis.exceptions import LockError, RedisError

from chassis import problems, sealing
from console.model import SESSION_LIFETIME, SIGN_IN_LIFETIME, Session, SignIn, Tokens

_PATIENCE_S = 2.0
_CONNECTIONS = 16
_BYTES = 32
_LONGEST = 64
_LOCK_S = 20.0
"""Longer than a refresh takes; a process that dies meanwhile holds up its session no longer than that."""


class Sessions:
    def __init__(self, redis_url: str, key: str) -> None:
        pool = BlockingConnectionPool.from_url(
            redis_url,
            max_connections=_CONNECTIONS,
            timeout=_PATIENCE_S,
            socket_timeout=_PATIENCE_S,
            socket_connect_timeout=_PATIENCE_S,
        )
        self._redis = Redis(connection_pool=pool)
        self._key = key.encode()

    def ping(self) -> None:
        with _or_unavailable():
            self._redis.ping()

    def begin_sign_in(self, sign_in: SignIn) -> str:
        """The cookie of a browser that goes to sign in."""
        content = {
            "state": sign_in.state,
            "verifier": sign_in.verifier,
            "goes_on_at": sign_in.goes_on_at,
            "nonce": sign_in.nonce,
        }
        cookie = secrets.token_urlsafe(_BYTES)
        self._put("sign-in", cookie, content, SIGN_IN_LIFETIME)
        return cookie

    def take_sign_in(self, cookie: str) -> SignIn | None:
        """Once: of two answers for one sign-in the second finds nothing."""
        with _or_unavailable():
            sealed = self._redis.getdel(_name("sign-in", cookie))
        content = self._opened("sign-in", cookie, sealed)
        return SignIn(**content) if content else None

    def add(self, session: Session) -> str:
        """The cookie of a new session."""
        cookie = secrets.token_urlsafe(_BYTES)
        self.put(cookie, session)
        return cookie

    def put(self, cookie: str, session: Session) -> None:
        tokens = session.tokens
        content = {
            "access": tokens.access,
            "refresh": tokens.refresh,
            "expires_at": tokens.expires_at.isoformat(),
            "ends_at": session.ends_at.isoformat(),
            "keys": session.keys,
        }
        left = min(session.ends_at - datetime.now(UTC), SESSION_LIFETIME)
        self._put("session", cookie, content, max(left, timedelta(seconds=1)))

    def find(self, cookie: str) -> Session | None:
        if not cookie or len(cookie) > _LONGEST:
            return None
        with _or_unavailable():
            sealed = self._redis.get(_name("session", cookie))
        content = self._opened("session", cookie, sealed)
        return _session(content) if content else None

    def drop(self, cookie: str) -> None:
        with _or_unavailable():
            self._redis.delete(_name("session", cookie))

    @contextmanager
    def locked(self, cookie: str) -> Iterator[None]:
        """One at a time for a session: a refresh token that is used twice ends everything."""
        lock = self._redis.lock(_name("lock", cookie), timeout=_LOCK_S, blocking_timeout=_LOCK_S)
        with _or_unavailable(), lock:
            yield

    def _put(self, kind: str, cookie: str, content: dict[str, Any], lifetime: timedelta) -> None:
        sealed = sealing.seal(self._sealing_key(cookie), json.dumps(content).encode(), kind.encode())
        with _or_unavailable():
            self._redis.set(_name(kind, cookie), sealed, px=lifetime)

    def _opened(self, kind: str, cookie: str, sealed: Any) -> dict[str, Any] | None:
        if not isinstance(sealed, bytes):
            return None
        try:
            content: dict[str, Any] = json.loads(sealing.unseal(self._sealing_key(cookie), sealed, kind.encode()))
        except sealing.BrokenSeal:
            return None
        return content

    def _sealing_key(self, cookie: str) -> bytes:
        return hashlib.sha256(b"\n".join((b"console", self._key, cookie.encode()))).digest()


def _session(content: dict[str, Any]) -> Session:
    tokens = Tokens(content["access"], content["refresh"], datetime.fromisoformat(content["expires_at"]))
    return Session(tokens, datetime.fromisoformat(content["ends_at"]), content["keys"])


def _name(kind: str, cookie: str) -> str:
    return f"tip:console:{kind}:{hashlib.sha256(cookie.encode()).hexdigest()}"


@contextmanager
def _or_unavailable() -> Iterator[None]:
    try:
        yield
    except (RedisError, LockError, OSError):
        raise problems.unavailable("Sessions cannot be read at the moment. Try again.") from None
