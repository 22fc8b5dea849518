"""Key pairs name accounts. Secrets are hashed at the door and neither kept nor logged."""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from uuid import UUID

INVALID = "INVALID"
FORBIDDEN = "FORBIDDEN"


class Unauthorized(Exception):
    """No key pair, or one that Alpaca would not know."""


class Forbidden(Exception):
    """A key pair that is known and not welcome here, as a live key at the paper address."""


def account_id(key_id: object, secret: object) -> str:
    """Any pair is welcome and has its own account, except key ids that begin with INVALID or FORBIDDEN."""
    if not isinstance(key_id, str) or not isinstance(secret, str) or not key_id or not secret:
        raise Unauthorized
    if key_id.startswith(INVALID):
        raise Unauthorized
    if key_id.startswith(FORBIDDEN):
        raise Forbidden
    pair = hashlib.sha256(f"{len(key_id)}:{key_id}:{secret}".encode()).digest()
    return str(UUID(bytes=pair[:16], version=4))


def from_headers(headers: Mapping[str, str]) -> str:
    """Alpaca's two headers, or the same pair as basic authorization."""
    kind, _, value = headers.get("Authorization", "").partition(" ")
    if kind.lower() == "basic":
        return account_id(*_basic(value))
    return account_id(headers.get("APCA-API-KEY-ID"), headers.get("APCA-API-SECRET-KEY"))


def require_operator(authorizations: Sequence[str], token: str) -> None:
    """Raise unless the one authorization is the operator's bearer token; if there is no token, in any case."""
    given = [authorization.encode("utf-8", "surrogateescape") for authorization in authorizations]
    if not token or len(given) != 1 or not hmac.compare_digest(given[0], f"Bearer {token}".encode()):
        raise Unauthorized


def _basic(value: str) -> tuple[str, str]:
    try:
        key_id, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        raise Unauthorized from None
    return key_id, secret
