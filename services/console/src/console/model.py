"""Signing in, as values: what is remembered of a browser, and what may be believed of an answer."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

SESSION_LIFETIME = timedelta(hours=12)
"""From signing in, however busy it is: as long as a session at identity."""
SIGN_IN_LIFETIME = timedelta(minutes=10)
"""How long somebody may take to sign in."""
REFRESH_BEFORE = timedelta(seconds=60)
"""An access token with less left is renewed before it is used: a page makes several calls with it."""
CLOCKS_DIFFER = timedelta(minutes=1)

HOME = "/console"
_OWN_PATH = re.compile(r"/(console|manual)(/[A-Za-z0-9._~/-]*)?(\?[A-Za-z0-9._~%&=:+-]*)?", re.ASCII)


class SignInFailed(Exception):
    """Signing in did not succeed. Try again."""


class SignedOut(Exception):
    """The session has ended. Sign in again."""


@dataclass(frozen=True)
class Tokens:
    """What the authorization server gave for a code or a refresh token."""

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)
    expires_at: datetime

    def are_due(self, now: datetime) -> bool:
        return self.expires_at - now < REFRESH_BEFORE


@dataclass(frozen=True)
class Session:
    """Somebody who has signed in with a browser."""

    tokens: Tokens
    ends_at: datetime
    keys: dict[str, str] = field(default_factory=dict, repr=False)
    """API keys that orders are submitted with, by environment: the API takes orders from keys alone."""


@dataclass(frozen=True)
class SignIn:
    """A browser on its way through the login."""

    state: str = field(repr=False)
    verifier: str = field(repr=False)
    goes_on_at: str
    nonce: str = field(default="", repr=False)
    """What the ID token must repeat, at an OpenID Connect provider."""

    @property
    def challenge(self) -> str:
        """RFC 7636, S256."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def check_id_token(claims: Mapping[str, Any], issuer: str, client_id: str, nonce: str, now: datetime) -> None:
    """OpenID Connect Core, 3.1.3.7. The token came from the provider itself: its signature would say no more."""
    audience, end = claims.get("aud"), claims.get("exp")
    audiences = audience if isinstance(audience, list) else [audience]
    is_ours = claims.get("iss") == issuer and client_id in audiences and claims.get("azp", client_id) == client_id
    is_valid = isinstance(end, int | float) and end > (now - CLOCKS_DIFFER).timestamp()
    if not (is_ours and is_valid and claims.get("nonce") == nonce):
        raise SignInFailed


def own_path(path: str) -> str:
    """The path if it is one of our pages, else the first page: nobody is sent away from here by a link."""
    return path if _OWN_PATH.fullmatch(path) and "//" not in path else HOME


def form_token(cookie: str) -> str:
    """What every form carries: only who holds the cookie can make it."""
    return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest()
