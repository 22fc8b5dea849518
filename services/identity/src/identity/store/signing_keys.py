"""The keys that sign tokens; the private half is sealed before it comes here."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, insert, select, text, update

from identity import model
from identity.store.tables import signing_key

_SHOWN = [column for column in signing_key.c if column.name != "retired_at"]


def accepted(tx: Connection) -> list[model.SigningKey]:
    """Every key whose tokens are still accepted, oldest first."""
    found = select(*_SHOWN).where(signing_key.c.retired_at.is_(None)).order_by(signing_key.c.created_at)
    return [model.SigningKey(**row._mapping) for row in tx.execute(found)]


def ever(tx: Connection) -> list[model.SigningKey]:
    """Every key there has been, retired ones too."""
    return [model.SigningKey(**row._mapping) for row in tx.execute(select(*_SHOWN).order_by(signing_key.c.created_at))]


def reseal(tx: Connection, kid: str, sealed: bytes) -> None:
    tx.execute(update(signing_key).where(signing_key.c.kid == kid).values(sealed_key=sealed))


def add(tx: Connection, kid: str, algorithm: str, public_jwk: Mapping[str, Any], sealed: bytes) -> None:
    # The moment of the statement, not of the transaction: waiting for the lock must not make a key look older.
    tx.execute(
        insert(signing_key).values(
            kid=kid,
            algorithm=algorithm,
            public_jwk=dict(public_jwk),
            sealed_key=sealed,
            created_at=func.clock_timestamp(),
        )
    )


def need_for(tx: Connection, kid: str, lifetime: timedelta) -> None:
    """A token of unusual lifetime keeps its key accepted for as long."""
    until = func.greatest(signing_key.c.needed_until, func.now() + lifetime)
    tx.execute(update(signing_key).where(signing_key.c.kid == kid).values(needed_until=until))


def retire(tx: Connection, kids: Collection[str]) -> None:
    tx.execute(update(signing_key).where(signing_key.c.kid.in_(kids)).values(retired_at=func.now()))


def lock(tx: Connection) -> None:
    """Two processes that find no key must not both make one."""
    tx.execute(text("SELECT pg_advisory_xact_lock(hashtext('identity.signing_key'))"))


def now(tx: Connection) -> datetime:
    moment: datetime = tx.execute(select(func.clock_timestamp())).scalar_one()
    return moment
