"""identity's tables."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from chassis import db
from chassis.outbox import ddl

SCHEMA = "identity"
METADATA = db.metadata(SCHEMA)
_MOMENT = DateTime(timezone=True)


def _created() -> Column[object]:
    return Column("created_at", _MOMENT, nullable=False, server_default=func.now())


organization = Table(
    "organization",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("provider", Text, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("disabled", Boolean, nullable=False, server_default="false"),
    _created(),
    Column("totp_required", Boolean, nullable=False, server_default="false"),
    UniqueConstraint("provider", "external_id"),
    Index(None, "created_at", "id"),
)
app_user = Table(
    "app_user",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("provider", Text, nullable=False),
    Column("subject", Text, nullable=False),
    _created(),
    Column("deletion_begun_at", _MOMENT),
    Column("deleted_at", _MOMENT),
    UniqueConstraint("provider", "subject"),
    Index(
        "app_user_unfinished_idx",
        "deletion_begun_at",
        postgresql_where=text("deletion_begun_at IS NOT NULL AND deleted_at IS NULL"),
    ),
)
membership = Table(
    "membership",
    METADATA,
    Column("organization_id", Uuid, ForeignKey(organization.c.id), primary_key=True),
    Column("user_id", Uuid, ForeignKey(app_user.c.id), primary_key=True, index=True),
    Column("role", Text, nullable=False),
    _created(),
    Column("removed_at", _MOMENT),
    CheckConstraint("role IN ('admin', 'member', 'read_only')", name="role"),
)
entitlement = Table(
    "entitlement",
    METADATA,
    Column("organization_id", Uuid, ForeignKey(organization.c.id), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("expires_at", _MOMENT),
    _created(),
    CheckConstraint("name IN ('controls_premium', 'trading_live')", name="name"),
)
api_key = Table(
    "api_key",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, ForeignKey(organization.c.id), nullable=False),
    Column("name", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("permissions", ARRAY(Text), nullable=False),
    Column("prefix", Text, nullable=False, index=True),
    Column("key_digest", LargeBinary, nullable=False, unique=True),
    Column("disabled", Boolean, nullable=False, server_default="false"),
    Column("expires_at", _MOMENT),
    Column("last_used_at", _MOMENT),
    _created(),
    Column("bounds", JSONB(none_as_null=True)),
    CheckConstraint("environment IN ('paper', 'live')", name="environment"),
    Index(None, "organization_id", "created_at", "id"),
)
service_account = Table(
    "service_account",
    METADATA,
    Column("client_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("secret_digest", LargeBinary, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("disabled", Boolean, nullable=False, server_default="false"),
    _created(),
)
signing_key = Table(
    "signing_key",
    METADATA,
    Column("kid", Text, primary_key=True),
    Column("algorithm", Text, nullable=False),
    Column("public_jwk", JSONB, nullable=False),
    Column("sealed_key", LargeBinary, nullable=False),
    _created(),
    Column("needed_until", _MOMENT),
    Column("retired_at", _MOMENT),
)
invitation = Table(
    "invitation",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, ForeignKey(organization.c.id), nullable=False),
    Column("subject", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("invited_by", Text, nullable=False),
    Column("code_digest", LargeBinary, nullable=False, unique=True),
    _created(),
    Column("expires_at", _MOMENT, nullable=False),
    CheckConstraint("role IN ('admin', 'member', 'read_only')", name="role"),
    UniqueConstraint("organization_id", "subject"),
)
audit_entry = Table(
    "audit_entry",
    METADATA,
    Column("organization_id", Uuid, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("type", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("value_before", JSON(none_as_null=True)),
    Column("value_after", JSON(none_as_null=True)),
    Column("actor_type", Text, nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("request_id", Text),
    Column("created_at", _MOMENT, nullable=False, server_default=func.clock_timestamp()),
    Index("audit_entry_type_idx", "organization_id", "type", "sequence"),
    Index("audit_entry_target_idx", "organization_id", "target", "sequence"),
    Index("audit_entry_actor_idx", "organization_id", "actor_id", "sequence"),
)
ddl.tables(METADATA)
