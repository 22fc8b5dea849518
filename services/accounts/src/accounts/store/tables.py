"""accounts' tables."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
    func,
    text,
)

from chassis import db, feed
from chassis.outbox import ddl

SCHEMA = "accounts"
METADATA = db.metadata(SCHEMA)
_MOMENT = DateTime(timezone=True)


def _moment(name: str) -> Column[object]:
    return Column(name, _MOMENT, nullable=False, server_default=func.now())


account = Table(
    "account",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("broker", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("broker_account_id", Text),
    Column("time_zone", Text, nullable=False, server_default="UTC"),
    Column("disabled", Boolean, nullable=False, server_default="false"),
    Column("disabled_reason", Text),
    _moment("created_at"),
    _moment("updated_at"),
    Column("deleted_at", _MOMENT),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("closing_at", _MOMENT),
    Column("closing_operation_id", Uuid),
    Column("flatten_excess", Boolean, nullable=False, server_default="false"),
    CheckConstraint("environment IN ('paper', 'live')", name="environment"),
    Index(
        None,
        "organization_id",
        "created_at",
        "id",
        postgresql_where=text("deleted_at IS NULL AND organization_id IS NOT NULL"),
    ),
)
Index(
    "account_closing_at_idx",
    account.c.closing_at,
    postgresql_where=text("closing_at IS NOT NULL AND deleted_at IS NULL"),
)
credential = Table(
    "credential",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("account_id", Uuid, ForeignKey(account.c.id), nullable=False),
    Column("organization_id", Uuid, nullable=False),
    Column("label", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="pending"),
    Column("fingerprint", Text, nullable=False),
    _moment("created_at"),
    _moment("updated_at"),
    Column("deleted_at", _MOMENT),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("vault_version", Integer),
    Column("destroyed_through", Integer, nullable=False, server_default="0"),
    Column("test_id", Uuid),
    Column("test_status", Text),
    Column("tested_at", _MOMENT),
    CheckConstraint("status IN ('pending', 'active', 'invalid', 'revoked')", name="status"),
    CheckConstraint("test_status IN ('pending', 'accepted', 'refused', 'failed')", name="test_status"),
    Index(None, "account_id", "created_at", "id", postgresql_where=text("deleted_at IS NULL")),
)
sealed_secret = Table(
    "sealed_secret",
    METADATA,
    Column("credential_id", Uuid, ForeignKey(credential.c.id), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("wrapped_key", LargeBinary, nullable=False),
    Column("ciphertext", LargeBinary, nullable=False),
    _moment("created_at"),
)
vault_object = Table(
    "vault_object",
    METADATA,
    Column("credential_id", Uuid, ForeignKey(credential.c.id), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("key_id", Text),
    Column("wrapped_key", LargeBinary),
    Column("ciphertext", LargeBinary),
    _moment("created_at"),
    Column("destroyed_at", _MOMENT),
)
ddl.tables(METADATA)
feed.table(METADATA)
