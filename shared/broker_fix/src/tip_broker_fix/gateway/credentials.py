"""Who may trade in which account: whoever has the key that its operator has made from the gateway's own."""

import hashlib
import hmac
from collections.abc import Mapping

KEY_ID, SECRET_KEY = "APCA-API-KEY-ID", "APCA-API-SECRET-KEY"


class Unauthorized(Exception):
    """No key pair, or not the account's."""


def secret_key(account_key: str, account: str) -> str:
    return hmac.new(account_key.encode(), b"account:" + account.encode(), hashlib.sha256).hexdigest()


def check(account_key: str, account: object, given: object) -> str:
    """The account."""
    if not isinstance(account, str) or not isinstance(given, str) or not account.isprintable():
        raise Unauthorized
    expected = secret_key(account_key, account)
    if not account or not hmac.compare_digest(expected.encode(), given.encode(errors="replace")):
        raise Unauthorized
    return account


def from_headers(account_key: str, headers: Mapping[str, str]) -> str:
    return check(account_key, headers.get(KEY_ID), headers.get(SECRET_KEY))
