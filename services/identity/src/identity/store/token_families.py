"""What people let clients do: families of tokens, and the codes and refresh tokens that lead to them, as digests."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from identity import model_login
from identity.store.login_tables import (
    authorization_code,
    device_code,
    is_shown,
    oauth_client,
    refresh_token,
    token_family,
)
from identity.store.tables import app_user, membership, organization

_STATE = (
    device_code.c.spent_at.is_not(None).label("spent"),
    (device_code.c.expires_at <= func.now()).label("expired"),
)
_ACTIVE = and_(token_family.c.revoked_at.is_(None), token_family.c.expires_at > func.now())


def find_client(tx: Connection, client_id: str) -> model_login.Client | None:
    row = tx.execute(select(oauth_client).where(oauth_client.c.client_id == client_id)).one_or_none()
    return model_login.Client(row.client_id, row.name, tuple(row.redirect_uris)) if row else None


def put_client(tx: Connection, client: model_login.Client) -> None:
    values = {"name": client.name, "redirect_uris": list(client.redirect_uris)}
    new = upsert(oauth_client).values(client_id=client.client_id, **values)
    tx.execute(new.on_conflict_do_update(index_elements=["client_id"], set_=values))


def choices(tx: Connection, user_id: UUID) -> list[model_login.OrganizationChoice]:
    """The active organizations that the user belongs to."""
    found = (
        select(organization.c.id, organization.c.external_id, organization.c.name, organization.c.totp_required)
        .join(membership, membership.c.organization_id == organization.c.id)
        .where(membership.c.user_id == user_id, membership.c.removed_at.is_(None), ~organization.c.disabled)
        .order_by(organization.c.name, organization.c.id)
    )
    return [model_login.OrganizationChoice(*row) for row in tx.execute(found)]


def add(
    tx: Connection,
    family_id: UUID,
    client_id: str,
    session: model_login.Session,
    organization_id: UUID,
    lifetime: timedelta,
) -> None:
    values = {"id": family_id, "client_id": client_id, "user_id": session.user_id, "totp": session.totp}
    new = insert(token_family).values(**values, organization_id=organization_id, expires_at=func.now() + lifetime)
    tx.execute(new)


def lock(tx: Connection, family_id: UUID) -> model_login.Family | None:
    """The family, unless its user was deleted, with nobody else using or ending it until the transaction ends."""
    found = (
        select(token_family, app_user.c.subject, _ACTIVE.label("active"))
        .join(app_user, app_user.c.id == token_family.c.user_id)
        .where(token_family.c.id == family_id, app_user.c.deleted_at.is_(None))
        .with_for_update(of=token_family)
    )
    row = tx.execute(found).one_or_none()
    return _family(row) if row else None


def revoke(tx: Connection, family_id: UUID) -> None:
    ended = update(token_family).where(token_family.c.id == family_id, token_family.c.revoked_at.is_(None))
    tx.execute(ended.values(revoked_at=func.now()))


def revoke_all(tx: Connection, user_id: UUID) -> None:
    ended = update(token_family).where(token_family.c.user_id == user_id, token_family.c.revoked_at.is_(None))
    tx.execute(ended.values(revoked_at=func.now()))


def revoke_of_member(tx: Connection, organization_id: UUID, user_id: UUID) -> None:
    own = (token_family.c.user_id == user_id) & (token_family.c.organization_id == organization_id)
    tx.execute(update(token_family).where(own, token_family.c.revoked_at.is_(None)).values(revoked_at=func.now()))


def add_authorization_code(
    tx: Connection, digest: bytes, family_id: UUID, new: model_login.NewAuthorizationCode, lifetime: timedelta
) -> None:
    values = {"digest": digest, "family_id": family_id}
    values |= {"redirect_uri": new.redirect_uri, "code_challenge": new.code_challenge}
    tx.execute(insert(authorization_code).values(**values, expires_at=func.now() + lifetime))


def find_authorization_code(tx: Connection, digest: bytes) -> model_login.AuthorizationCode | None:
    expired = (authorization_code.c.expires_at <= func.now()).label("expired")
    found = (
        select(authorization_code, token_family.c.client_id, expired)
        .join(token_family, token_family.c.id == authorization_code.c.family_id)
        .where(is_shown(authorization_code.c.digest, digest))
    )
    row = tx.execute(found).one_or_none()
    return _authorization_code(row) if row else None


def spend_authorization_code(tx: Connection, digest: bytes) -> bool:
    """Whether this call spent it: of many only one did."""
    unspent = is_shown(authorization_code.c.digest, digest) & authorization_code.c.spent_at.is_(None)
    return tx.execute(update(authorization_code).where(unspent).values(spent_at=func.now())).rowcount == 1


def add_device_code(
    tx: Connection, digest: bytes, user_code_digest: bytes, client_id: str, lifetime: timedelta, interval_s: int
) -> bool:
    """Whether the user code was free."""
    values = {"digest": digest, "user_code_digest": user_code_digest, "client_id": client_id, "interval_s": interval_s}
    new = upsert(device_code).values(**values, expires_at=func.now() + lifetime)
    return tx.execute(new.on_conflict_do_nothing()).rowcount == 1


def poll_device_code(tx: Connection, digest: bytes, longer_s: int) -> model_login.DeviceCode | None:
    """Note that the device polled. One that polls too soon has to wait longer from now on."""
    since = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, device_code.c.interval_s)
    row = tx.execute(
        select(device_code, *_STATE, (device_code.c.polled_at > since).label("too_soon"))
        .where(is_shown(device_code.c.digest, digest))
        .with_for_update()
    ).one_or_none()
    if row is None:
        return None
    interval_s = row.interval_s + (longer_s if row.too_soon else 0)
    polled = update(device_code).where(is_shown(device_code.c.digest, digest))
    tx.execute(polled.values(polled_at=func.now(), interval_s=interval_s))
    return _device_code(row, too_soon=bool(row.too_soon))


def lock_device_code(tx: Connection, user_code_digest: bytes) -> model_login.DeviceCode | None:
    found = select(device_code, *_STATE).where(is_shown(device_code.c.user_code_digest, user_code_digest))
    row = tx.execute(found.with_for_update()).one_or_none()
    return _device_code(row) if row else None


def decide_device_code(tx: Connection, digest: bytes, family_id: UUID | None) -> None:
    """Without a family it is denied."""
    decided = update(device_code).where(is_shown(device_code.c.digest, digest))
    tx.execute(decided.values(family_id=family_id, denied=family_id is None))


def spend_device_code(tx: Connection, digest: bytes) -> bool:
    unspent = is_shown(device_code.c.digest, digest) & device_code.c.spent_at.is_(None)
    return tx.execute(update(device_code).where(unspent).values(spent_at=func.now())).rowcount == 1


def add_refresh_token(tx: Connection, digest: bytes, family_id: UUID) -> None:
    tx.execute(insert(refresh_token).values(digest=digest, family_id=family_id))


def family_of_refresh_token(tx: Connection, digest: bytes) -> tuple[UUID, str] | None:
    """The family of the token, spent or not, and whose client it is."""
    found = (
        select(token_family.c.id, token_family.c.client_id)
        .join(refresh_token, refresh_token.c.family_id == token_family.c.id)
        .where(is_shown(refresh_token.c.digest, digest))
    )
    row = tx.execute(found).one_or_none()
    return (row.id, row.client_id) if row else None


def spend_refresh_token(tx: Connection, digest: bytes) -> bool:
    """Whether this call spent it: of many only one did."""
    unspent = is_shown(refresh_token.c.digest, digest) & refresh_token.c.spent_at.is_(None)
    return tx.execute(update(refresh_token).where(unspent).values(spent_at=func.now())).rowcount == 1


def _family(row: Any) -> model_login.Family:
    return model_login.Family(
        row.id, row.client_id, row.user_id, row.subject, row.organization_id, row.totp, row.active
    )


def _authorization_code(row: Any) -> model_login.AuthorizationCode:
    spent = row.spent_at is not None
    return model_login.AuthorizationCode(
        bytes(row.digest), row.family_id, row.client_id, row.redirect_uri, row.code_challenge, spent, row.expired
    )


def _device_code(row: Any, *, too_soon: bool = False) -> model_login.DeviceCode:
    return model_login.DeviceCode(
        bytes(row.digest), row.client_id, row.family_id, row.denied, row.spent, row.expired, too_soon
    )
