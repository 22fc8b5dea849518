"""SQL on the local vault's objects, and on re-wrapping everything that is sealed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Table, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from accounts.store.tables import account, credential, sealed_secret, vault_object
from chassis.worker.outage import outage_as
from credential_vault import Envelope, Missing, SecretPath, Unavailable

_GONE = {"key_id": None, "wrapped_key": None, "ciphertext": None, "destroyed_at": func.now()}


class VaultObjects:
    """`credential_vault.Objects` on our own table. Each call is a transaction of its own and joins no other."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self, path: SecretPath) -> Envelope | None:
        with self._transaction() as tx:
            row = tx.execute(select(vault_object).where(*_at(vault_object, path))).one_or_none()
        if row is None:
            raise Missing
        return None if row.destroyed_at else Envelope(row.key_id, bytes(row.wrapped_key), bytes(row.ciphertext))

    def save(self, path: SecretPath, envelope: Envelope) -> bool:
        values = {**_key(path), **_columns(envelope)}
        with self._transaction() as tx:
            return tx.execute(upsert(vault_object).values(values).on_conflict_do_nothing()).rowcount == 1

    def destroy(self, path: SecretPath) -> None:
        closed = upsert(vault_object).values(**_key(path), **_GONE)
        with self._transaction() as tx:
            tx.execute(closed.on_conflict_do_update(index_elements=["credential_id", "version"], set_=_GONE))

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with outage_as(Unavailable), self._engine.begin() as tx:
            yield tx


def under_other_keys(
    tx: Connection, table: Table, current_key_id: str, after: SecretPath | None, batch: int
) -> list[tuple[SecretPath, Envelope]]:
    """Envelopes that are not under this key, by path, locked: whoever uses one is waited for and not passed over."""
    at = (table.c.credential_id, table.c.version)
    wanted = (
        select(account.c.organization_id, credential.c.account_id, table)
        .join_from(table, credential)
        .join(account)
        .where(table.c.key_id != current_key_id)
    )
    if after is not None:
        wanted = wanted.where(tuple_(*at) > tuple_(after.credential_id, after.version))
    return [
        (
            SecretPath(row.organization_id, row.account_id, row.credential_id, row.version),
            Envelope(row.key_id, bytes(row.wrapped_key), bytes(row.ciphertext)),
        )
        for row in tx.execute(wanted.order_by(*at).limit(batch).with_for_update(of=table))
    ]


def replace_envelope(tx: Connection, table: Table, path: SecretPath, envelope: Envelope) -> None:
    tx.execute(update(table).where(*_at(table, path)).values(_columns(envelope)))


def sealed_tables() -> dict[str, Table]:
    """Every table that holds envelopes, by the purpose they are sealed for."""
    return {"vault": vault_object, "request": sealed_secret}


def _key(path: SecretPath) -> dict[str, Any]:
    return {"credential_id": path.credential_id, "version": path.version}


def _at(table: Table, path: SecretPath) -> list[Any]:
    return [table.c.credential_id == path.credential_id, table.c.version == path.version]


def _columns(envelope: Envelope) -> dict[str, Any]:
    return {"key_id": envelope.key_id, "wrapped_key": envelope.wrapped_key, "ciphertext": envelope.ciphertext}
