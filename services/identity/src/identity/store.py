"""identity's tables and the only SQL on them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    DateTime,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.dialects.postgresql import insert as upsert

from chassis import db
from chassis.outbox import ddl
from identity import model

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
    UniqueConstraint("provider", "external_id"),
)
app_user = Table(
    "app_user",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("provider", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("email", Text),
    _created(),
    Column("deletion_requested_at", _MOMENT),
    Column("deleted_at", _MOMENT),
    UniqueConstraint("provider", "subject"),
)
membership = Table(
    "membership",
    METADATA,
    Column("organization_id", Uuid, ForeignKey(organization.c.id), primary_key=True),
    Column("user_id", Uuid, ForeignKey(app_user.c.id), primary_key=True, index=True),
    Column("role", Text, nullable=False),
    _created(),
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
    Column("retired_at", _MOMENT),
)
ddl.tables(METADATA)

_SHOWN = [column for column in api_key.c if column.name != "key_digest"]


def keys_with_prefix(tx: Connection, prefix: str) -> list[tuple[bytes, model.ApiKey]]:
    """The keys whose public part this is, each with its digest; two with one prefix are unlikely, not impossible."""
    rows = tx.execute(select(api_key).where(api_key.c.prefix == prefix))
    return [(bytes(row.key_digest), _api_key(row)) for row in rows]


def insert_key(
    tx: Connection, key_id: UUID, organization_id: UUID, new: model.NewApiKey, prefix: str, digest: bytes
) -> model.ApiKey:
    values = {
        "id": key_id,
        "organization_id": organization_id,
        "name": new.name,
        "environment": new.environment,
        "permissions": list(new.permissions),
        "prefix": prefix,
        "key_digest": digest,
        "expires_at": new.expires_at,
    }
    return _api_key(tx.execute(insert(api_key).values(values).returning(*_SHOWN)).one())


def insert_organization(tx: Connection, new_id: UUID, provider: str, external_id: str, name: str) -> model.Organization:
    values = {"id": new_id, "provider": provider, "external_id": external_id, "name": name}
    return _organization(tx.execute(insert(organization).values(values).returning(organization)).one())


def organization_by_external_id(tx: Connection, provider: str, external_id: str) -> model.Organization | None:
    found = select(organization).where(organization.c.provider == provider, organization.c.external_id == external_id)
    row = tx.execute(found).one_or_none()
    return _organization(row) if row else None


def upsert_user(tx: Connection, new_id: UUID, provider: str, subject: str) -> UUID:
    """The id of the user, known before or not."""
    known = select(app_user.c.id).where(app_user.c.provider == provider, app_user.c.subject == subject)
    added = upsert(app_user).values(id=new_id, provider=provider, subject=subject).on_conflict_do_nothing()
    tx.execute(added)
    user_id: UUID = tx.execute(known).scalar_one()
    return user_id


def put_membership(tx: Connection, organization_id: UUID, user_id: UUID, role: str) -> None:
    new = upsert(membership).values(organization_id=organization_id, user_id=user_id, role=role)
    tx.execute(new.on_conflict_do_update(index_elements=["organization_id", "user_id"], set_={"role": role}))


def put_entitlement(tx: Connection, organization_id: UUID, name: str, expires_at: datetime | None) -> None:
    new = upsert(entitlement).values(organization_id=organization_id, name=name, expires_at=expires_at)
    tx.execute(new.on_conflict_do_update(index_elements=["organization_id", "name"], set_={"expires_at": expires_at}))


def insert_service_account(
    tx: Connection, client_id: str, name: str, scopes: Sequence[str], secret_digest: bytes
) -> model.ServiceAccount:
    values = {"client_id": client_id, "name": name, "scopes": list(scopes), "secret_digest": secret_digest}
    return _service_account(tx.execute(insert(service_account).values(values).returning(service_account)).one())


def service_account_with_digest(tx: Connection, client_id: str) -> tuple[bytes, model.ServiceAccount] | None:
    row = tx.execute(select(service_account).where(service_account.c.client_id == client_id)).one_or_none()
    return (bytes(row.secret_digest), _service_account(row)) if row else None


def signing_keys(tx: Connection) -> list[model.SigningKey]:
    """Every key whose tokens are still accepted."""
    columns = [column for column in signing_key.c if column.name != "retired_at"]
    rows = tx.execute(select(*columns).where(signing_key.c.retired_at.is_(None)))
    return [model.SigningKey(**row._mapping) for row in rows]


def insert_signing_key(tx: Connection, kid: str, algorithm: str, public_jwk: Mapping[str, Any], sealed: bytes) -> None:
    tx.execute(insert(signing_key).values(kid=kid, algorithm=algorithm, public_jwk=dict(public_jwk), sealed_key=sealed))


def lock_signing_keys(tx: Connection) -> None:
    """Two processes that find no key must not both make one."""
    tx.execute(text("SELECT pg_advisory_xact_lock(hashtext('identity.signing_key'))"))


def now(tx: Connection) -> datetime:
    moment: datetime = tx.execute(select(func.clock_timestamp())).scalar_one()
    return moment


def _organization(row: Any) -> model.Organization:
    return model.Organization(row.id, row.external_id, row.name, row.provider, row.disabled, row.created_at)


def _service_account(row: Any) -> model.ServiceAccount:
    return model.ServiceAccount(row.client_id, row.name, tuple(row.scopes), row.disabled, row.created_at)


def _api_key(row: object) -> model.ApiKey:
    shown = {column.name: getattr(row, column.name) for column in _SHOWN}
    return model.ApiKey(**shown | {"permissions": tuple(shown["permissions"])})
