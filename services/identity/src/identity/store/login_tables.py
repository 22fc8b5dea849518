"""identity's tables for signing in with the local provider."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    ForeignKey,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
    func,
)
from sqlalchemy.dialects.postgresql import ARRAY

from identity.store.tables import METADATA, app_user, organization

_MOMENT = DateTime(timezone=True)


def _of_user() -> Column[object]:
    return Column("user_id", Uuid, ForeignKey(app_user.c.id), primary_key=True)


def _digest() -> Column[object]:
    return Column("digest", LargeBinary, primary_key=True)


def _moment(name: str) -> Column[object]:
    return Column(name, _MOMENT, nullable=False, server_default=func.now())


def _flag(name: str) -> Column[object]:
    return Column(name, Boolean, nullable=False, server_default="false")


password = Table("password", METADATA, _of_user(), Column("hash", Text, nullable=False), _moment("changed_at"))
one_time_code = Table(
    "one_time_code",
    METADATA,
    _of_user(),
    Column("digest", LargeBinary, nullable=False),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("expires_at", _MOMENT, nullable=False),
)
totp = Table(
    "totp",
    METADATA,
    _of_user(),
    Column("sealed_secret", LargeBinary, nullable=False),
    _flag("confirmed"),
    Column("last_step", BigInteger, nullable=False, server_default="0"),
    Column("failures", Integer, nullable=False, server_default="0"),
)
sign_in_session = Table(
    "sign_in_session",
    METADATA,
    _digest(),
    Column("user_id", Uuid, ForeignKey(app_user.c.id), nullable=False, index=True),
    Column("signed_in", Boolean, nullable=False),
    Column("totp", Boolean, nullable=False),
    Column("tries", Integer, nullable=False, server_default="0"),
    _moment("created_at"),
    Column("expires_at", _MOMENT, nullable=False, index=True),
)
oauth_client = Table(
    "oauth_client",
    METADATA,
    Column("client_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("redirect_uris", ARRAY(Text), nullable=False),
    _moment("created_at"),
)
token_family = Table(
    "token_family",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("client_id", Text, nullable=False),
    Column("user_id", Uuid, ForeignKey(app_user.c.id), nullable=False, index=True),
    Column("organization_id", Uuid, ForeignKey(organization.c.id), nullable=False),
    Column("totp", Boolean, nullable=False),
    _moment("created_at"),
    Column("expires_at", _MOMENT, nullable=False, index=True),
    Column("revoked_at", _MOMENT),
)


def _family(*, nullable: bool = False) -> Column[object]:
    return Column("family_id", Uuid, ForeignKey(token_family.c.id, ondelete="CASCADE"), nullable=nullable, index=True)


authorization_code = Table(
    "authorization_code",
    METADATA,
    _digest(),
    _family(),
    Column("redirect_uri", Text, nullable=False),
    Column("code_challenge", Text, nullable=False),
    Column("expires_at", _MOMENT, nullable=False),
    Column("spent_at", _MOMENT),
)
device_code = Table(
    "device_code",
    METADATA,
    _digest(),
    Column("user_code_digest", LargeBinary, nullable=False, unique=True),
    Column("client_id", Text, nullable=False),
    _family(nullable=True),
    _flag("denied"),
    Column("interval_s", Integer, nullable=False),
    Column("polled_at", _MOMENT),
    Column("expires_at", _MOMENT, nullable=False, index=True),
    Column("spent_at", _MOMENT),
)
refresh_token = Table(
    "refresh_token",
    METADATA,
    _digest(),
    _family(),
    _moment("created_at"),
    Column("spent_at", _MOMENT),
)


def is_shown(digest_column: ColumnElement[Any], shown: bytes) -> ColumnElement[bool]:
    """The row of a code, cookie or token, found in an index by the digest of what somebody shows."""
    return digest_column == shown
