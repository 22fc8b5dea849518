"""Passwords of local people, and the one-time codes by which they are set: at the first sign-in, and to reset one."""

import hmac
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from uuid import UUID

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection

from chassis import db, keys, logs, tenancy
from identity import audit, model, model_login
from identity.store import logins as store
from identity.store import token_families
from identity.usecases.deps import Deps

log = logs.get(__name__)

# The least that OWASP recommends for argon2id. Each takes some 20 MiB, so few are at work at once in a process.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
_AT_ONCE = threading.BoundedSemaphore(4)
PATIENCE_S = 3.0
_CODE_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_LENGTH = 20


def issue_one_time_code(deps: Deps, tx: Connection, subject: str) -> str:
    """A code by which the local person sets a password, once; it replaces the one before. To be shown this once."""
    return code_for(tx, _local_user(deps, tx, subject).id)


def _local_user(deps: Deps, tx: Connection, subject: str) -> model.User:
    if deps.provider.vouches:
        raise model_login.LoginElsewhere
    user = store.find_user(tx, deps.provider.name, model_login.subject_of(subject))
    if user is None:
        raise model.NotFound
    return user


def code_for(tx: Connection, user_id: UUID, lifetime: timedelta = model_login.ONE_TIME_CODE_LIFETIME) -> str:
    code = new_code()
    store.put_one_time_code(tx, user_id, keys.digest(model_login.written_code(code)), lifetime)
    return code


def new_code() -> str:
    """A code of nobody's, as long as it is not stored."""
    code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))
    return "-".join(code[start : start + 5] for start in range(0, _CODE_LENGTH, 5))


def reset_login(deps: Deps, subject: str, *, totp: bool) -> str:
    """For somebody who forgot the password, or whose password somebody else knows: a one-time code.

    Whatever was signed in with the old one ends now. With `totp` the second factor is taken away as well.
    """
    nobodys = _hashed(secrets.token_hex(32))
    with tenancy.serving_all(), deps.engine.begin() as tx:
        user = _local_user(deps, tx, subject)
        _replace_password(tx, user.id, nobodys)
        if totp:
            store.drop_totp(tx, user.id)
        code = code_for(tx, user.id)
        deps.record_login(tx, user.id, audit.LOGIN_RESET, model_login.Reset(totp), by_hand=True)
        return code


def _replace_password(tx: Connection, user_id: UUID, hashed: str) -> None:
    """And end everything that was signed in with the old one."""
    store.put_password(tx, user_id, hashed)
    store.drop_sessions(tx, user_id)
    token_families.revoke_all(tx, user_id)


def set_password(deps: Deps, subject: str, code: str, password: str) -> model_login.ProvenPassword:
    """Set the password by a one-time code and end everything that was signed in with the old one."""
    model_login.check_password(password, subject)
    hashed = _hashed(password)  # slow, and as slow for whoever is not known: no transaction is open meanwhile
    with deps.engine.begin() as tx:
        user_id = _user_with_code(deps, tx, subject, code)
        if user_id is not None:
            store.drop_one_time_code(tx, user_id)
            _replace_password(tx, user_id, hashed)
    if user_id is None:
        raise model_login.SignInRefused
    return model_login.ProvenPassword(user_id, hashed, method="one_time_code")


def _user_with_code(deps: Deps, tx: Connection, subject: str, code: str) -> UUID | None:
    user = store.find_user(tx, deps.provider.name, subject)
    expected = store.try_one_time_code(tx, user.id, model_login.ONE_TIME_CODE_TRIES) if user else None
    matches = hmac.compare_digest(expected or b"", keys.digest(model_login.written_code(code)))
    return user.id if user and matches else None


def verify_password(deps: Deps, subject: str, password: str) -> model_login.ProvenPassword:
    """Whose password this is. An unknown person takes as long as a wrong password."""
    with db.reading(deps.engine) as tx:
        user = store.find_user(tx, deps.provider.name, subject)
        hashed = store.password_hash(tx, user.id) if user else None
    matches = _matches(hashed or _nobodys(), password)
    if user is None or hashed is None or not matches:
        log.info("sign_in_refused", person=keys.digest(subject).hex()[:16])  # the same for whoever is not known
        raise model_login.SignInRefused
    better = _hashed(password) if _HASHER.check_needs_rehash(hashed) else None
    return model_login.ProvenPassword(user.id, hashed, better)


def confirm_password(tx: Connection, proven: model_login.ProvenPassword) -> None:
    """Verifying took a while: refused if the password was reset or changed meanwhile, and it waits for us from now on.

    Only then the better hash is stored: in place of the one that was verified, never of a new one.
    """
    if not store.lock_password(tx, proven.user_id, proven.hash):
        raise model_login.SignInRefused
    if proven.better_hash:
        store.put_password(tx, proven.user_id, proven.better_hash)


def has_password(deps: Deps, tx: Connection, subject: str) -> bool:
    user = store.find_user(tx, deps.provider.name, subject)
    return user is not None and store.password_hash(tx, user.id) is not None


def _matches(hashed: str, password: str) -> bool:
    try:
        with _one_of_few():
            return _HASHER.verify(hashed, model_login.normalized(password))
    except (VerificationError, InvalidHashError):
        return False


def _hashed(password: str) -> str:
    with _one_of_few():
        return _HASHER.hash(model_login.normalized(password))


@contextmanager
def _one_of_few() -> Iterator[None]:
    """A crowd that signs in at once waits a while; who would wait longer is sent away instead of holding a thread."""
    if not _AT_ONCE.acquire(timeout=PATIENCE_S):
        raise model_login.SignInBusy
    try:
        yield
    finally:
        _AT_ONCE.release()


@cache
def _nobodys() -> str:
    return _HASHER.hash(secrets.token_hex(16))
