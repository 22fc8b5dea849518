"""Passwords of local people, and the one-time codes by which they are set: at the first sign-in, and to reset one."""

import hmac
import secrets
import threading
from datetime import timedelta
from functools import cache
from uuid import UUID

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection

from chassis import db, keys
from identity import model, model_login
from identity.store import logins as store
from identity.store import token_families
from identity.usecases.deps import Deps

# The least that OWASP recommends for argon2id. Each takes some 20 MiB, so few are at work at once in a process.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
_AT_ONCE = threading.BoundedSemaphore(4)
_CODE_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_LENGTH = 20


def issue_one_time_code(deps: Deps, tx: Connection, subject: str) -> str:
    """A code by which the local person sets a password, once; it replaces the one before. To be shown this once."""
    if deps.provider.vouches:
        raise model_login.LoginElsewhere
    user = store.find_user(tx, deps.provider.name, model_login.subject_of(subject))
    if user is None:
        raise model.NotFound
    return code_for(tx, user.id)


def code_for(tx: Connection, user_id: UUID, lifetime: timedelta = model_login.ONE_TIME_CODE_LIFETIME) -> str:
    code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))
    store.put_one_time_code(tx, user_id, keys.digest(code), lifetime)
    return "-".join(code[start : start + 5] for start in range(0, _CODE_LENGTH, 5))


def reset_login(deps: Deps, subject: str, *, totp: bool) -> str:
    """For somebody who forgot the password, or whose password somebody else knows: a one-time code.

    Whatever was signed in with the old one ends now. With `totp` the second factor is taken away as well.
    """
    nobodys = _hashed(secrets.token_hex(32))
    with deps.engine.begin() as tx:
        code = issue_one_time_code(deps, tx, subject)
        user = store.find_user(tx, deps.provider.name, model_login.subject_of(subject))
        if user:
            _replace_password(tx, user.id, nobodys)
        if totp and user:
            store.drop_totp(tx, user.id)
    return code


def _replace_password(tx: Connection, user_id: UUID, hashed: str) -> None:
    """And end everything that was signed in with the old one."""
    store.put_password(tx, user_id, hashed)
    store.drop_sessions(tx, user_id)
    token_families.revoke_all(tx, user_id)


def set_password(deps: Deps, subject: str, code: str, password: str) -> UUID:
    """Set the password by a one-time code and end everything that was signed in with the old one; the user's id."""
    model_login.check_password(password, subject)
    hashed = _hashed(password)  # slow, and as slow for whoever is not known: no transaction is open meanwhile
    with deps.engine.begin() as tx:
        user_id = _user_with_code(deps, tx, subject, code)
        if user_id is not None:
            store.drop_one_time_code(tx, user_id)
            _replace_password(tx, user_id, hashed)
    if user_id is None:
        raise model_login.SignInRefused
    return user_id


def _user_with_code(deps: Deps, tx: Connection, subject: str, code: str) -> UUID | None:
    user = store.find_user(tx, deps.provider.name, subject)
    expected = store.try_one_time_code(tx, user.id, model_login.ONE_TIME_CODE_TRIES) if user else None
    matches = hmac.compare_digest(expected or b"", keys.digest(model_login.written_code(code)))
    return user.id if user and matches else None


def verify_password(deps: Deps, subject: str, password: str) -> UUID:
    """The user whose password this is. An unknown person takes as long as a wrong password."""
    with db.reading(deps.engine) as tx:
        user = store.find_user(tx, deps.provider.name, subject)
        hashed = store.password_hash(tx, user.id) if user else None
    matches = _matches(hashed or _nobodys(), password)
    if user is None or hashed is None or not matches:
        raise model_login.SignInRefused
    if _HASHER.check_needs_rehash(hashed):
        _rehash(deps, user.id, password)
    return user.id


def has_password(deps: Deps, tx: Connection, subject: str) -> bool:
    user = store.find_user(tx, deps.provider.name, subject)
    return user is not None and store.password_hash(tx, user.id) is not None


def _rehash(deps: Deps, user_id: UUID, password: str) -> None:
    hashed = _hashed(password)
    with deps.engine.begin() as tx:
        store.put_password(tx, user_id, hashed)


def _matches(hashed: str, password: str) -> bool:
    try:
        with _AT_ONCE:
            return _HASHER.verify(hashed, model_login.normalized(password))
    except (VerificationError, InvalidHashError):
        return False


def _hashed(password: str) -> str:
    with _AT_ONCE:
        return _HASHER.hash(model_login.normalized(password))


@cache
def _nobodys() -> str:
    return _HASHER.hash(secrets.token_hex(16))
