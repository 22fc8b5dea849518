"""Passwords, one-time codes, second factors and sessions. Of a code or cookie only its digest is here."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from identity import model, model_login
from identity.store.login_tables import (
    device_code,
    is_shown,
    one_time_code,
    password,
    sign_in_session,
    token_family,
    totp,
)
from identity.store.tables import app_user


def find_user(tx: Connection, provider: str, subject: str) -> model.User | None:
    """The user, unless they were deleted."""
    named = (app_user.c.provider == provider) & (app_user.c.subject == subject)
    row = tx.execute(select(app_user).where(named, app_user.c.deleted_at.is_(None))).one_or_none()
    return model.User(row.id, row.provider, row.subject, row.created_at, row.deleted_at) if row else None


def password_hash(tx: Connection, user_id: UUID) -> str | None:
    found: str | None = tx.execute(select(password.c.hash).where(password.c.user_id == user_id)).scalar_one_or_none()
    return found


def has_login(tx: Connection, provider: str, subject: str) -> bool:
    """Whether the user has a password, or a code to set one with."""
    user = find_user(tx, provider, subject)
    if user is None:
        return False
    code = select(one_time_code.c.user_id).where(one_time_code.c.user_id == user.id)
    return password_hash(tx, user.id) is not None or tx.execute(code).first() is not None


def put_password(tx: Connection, user_id: UUID, hashed: str) -> None:
    values = {"hash": hashed, "changed_at": func.now()}
    new = upsert(password).values(user_id=user_id, hash=hashed)
    tx.execute(new.on_conflict_do_update(index_elements=["user_id"], set_=values))


def lock_password(tx: Connection, user_id: UUID, hashed: str) -> bool:
    """Whether this is the user's hash; if so nobody replaces it until the transaction ends."""
    found = select(password.c.user_id).where(password.c.user_id == user_id, password.c.hash == hashed)
    return tx.execute(found.with_for_update()).one_or_none() is not None


def put_one_time_code(tx: Connection, user_id: UUID, digest: bytes, lifetime: timedelta) -> None:
    """In place of the one before."""
    values = {"digest": digest, "tries": 0, "expires_at": func.now() + lifetime}
    new = upsert(one_time_code).values(user_id=user_id, **values)
    tx.execute(new.on_conflict_do_update(index_elements=["user_id"], set_=values))


def try_one_time_code(tx: Connection, user_id: UUID, most_tries: int) -> bytes | None:
    """Count a try; the digest to compare with, or None if there is no code that still counts."""
    usable = (one_time_code.c.tries < most_tries) & (one_time_code.c.expires_at > func.now())
    tried = update(one_time_code).where(one_time_code.c.user_id == user_id, usable)
    digest = tx.execute(
        tried.values(tries=one_time_code.c.tries + 1).returning(one_time_code.c.digest)
    ).scalar_one_or_none()
    return bytes(digest) if digest is not None else None


def drop_one_time_code(tx: Connection, user_id: UUID) -> None:
    tx.execute(delete(one_time_code).where(one_time_code.c.user_id == user_id))


def find_totp(tx: Connection, user_id: UUID) -> model_login.Totp | None:
    row = tx.execute(select(totp).where(totp.c.user_id == user_id)).one_or_none()
    return _totp(row) if row else None


def lock_totp(tx: Connection, user_id: UUID) -> model_login.Totp | None:
    """The same, with nobody else using or replacing it until the transaction ends."""
    row = tx.execute(select(totp).where(totp.c.user_id == user_id).with_for_update()).one_or_none()
    return _totp(row) if row else None


def all_totps(tx: Connection) -> list[model_login.Totp]:
    """Every second factor, with nobody else changing one until the transaction ends."""
    return [_totp(row) for row in tx.execute(select(totp).order_by(totp.c.user_id).with_for_update())]


def put_totp(tx: Connection, user_id: UUID, sealed: bytes) -> None:
    """A new second factor, not confirmed yet. One that is confirmed stays."""
    values = {"sealed_secret": sealed, "last_step": 0}
    new = upsert(totp).values(user_id=user_id, **values)
    tx.execute(new.on_conflict_do_update(index_elements=["user_id"], set_=values, where=~totp.c.confirmed))


def reseal_totp(tx: Connection, user_id: UUID, sealed: bytes) -> None:
    tx.execute(update(totp).where(totp.c.user_id == user_id).values(sealed_secret=sealed))


def use_totp(tx: Connection, user_id: UUID, step: int) -> bool:
    """Whether this call used the code of the step: nobody has used it, nor a later one, before."""
    unused = (totp.c.user_id == user_id) & (totp.c.last_step < step)
    used = update(totp).where(unused).values(last_step=step, confirmed=True, failures=0)
    return tx.execute(used).rowcount == 1


def try_totp(tx: Connection, user_id: UUID, most_failures: int) -> bool:
    """Count a failure, which using the code takes back; False if there were too many in a row."""
    tried = update(totp).where(totp.c.user_id == user_id, totp.c.failures < most_failures)
    return tx.execute(tried.values(failures=totp.c.failures + 1)).rowcount == 1


def drop_totp(tx: Connection, user_id: UUID) -> None:
    tx.execute(delete(totp).where(totp.c.user_id == user_id))


def add_session(
    tx: Connection, digest: bytes, user_id: UUID, lifetime: timedelta, *, signed_in: bool, totp: bool
) -> None:
    values = {"digest": digest, "user_id": user_id, "signed_in": signed_in, "totp": totp}
    tx.execute(sign_in_session.insert().values(**values, expires_at=func.now() + lifetime))


def find_session(tx: Connection, digest: bytes) -> model_login.Session | None:
    found = (
        select(sign_in_session, app_user.c.subject)
        .join(app_user, app_user.c.id == sign_in_session.c.user_id)
        .where(is_shown(sign_in_session.c.digest, digest), sign_in_session.c.expires_at > func.now())
        .where(app_user.c.deleted_at.is_(None))
    )
    row = tx.execute(found).one_or_none()
    return model_login.Session(digest, row.user_id, row.subject, row.signed_in, row.totp) if row else None


def try_session(tx: Connection, digest: bytes, most_tries: int) -> bool:
    """Count a try of the second factor; False if there were too many."""
    tried = update(sign_in_session).where(
        is_shown(sign_in_session.c.digest, digest), sign_in_session.c.tries < most_tries
    )
    return tx.execute(tried.values(tries=sign_in_session.c.tries + 1)).rowcount == 1


def drop_session(tx: Connection, digest: bytes) -> None:
    tx.execute(delete(sign_in_session).where(is_shown(sign_in_session.c.digest, digest)))


def drop_sessions(tx: Connection, user_id: UUID) -> None:
    tx.execute(delete(sign_in_session).where(sign_in_session.c.user_id == user_id))


def remove_expired(tx: Connection) -> None:
    """What has run out, and everything of users who were deleted. Codes and tokens go with their family."""
    for table in (one_time_code, sign_in_session, token_family, device_code):
        tx.execute(delete(table).where(table.c.expires_at < func.now()))
    deleted = select(app_user.c.id).where(app_user.c.deleted_at.is_not(None))
    for table in (password, totp, one_time_code, sign_in_session, token_family):
        tx.execute(delete(table).where(table.c.user_id.in_(deleted)))


def _totp(row: Any) -> model_login.Totp:
    return model_login.Totp(row.user_id, bytes(row.sealed_secret), row.confirmed, row.last_step)
