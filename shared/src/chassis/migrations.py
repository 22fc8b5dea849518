"""Schema migrations of every installed service, by one command under one lock.

A service announces itself by an entry point in the group `tip.services` (name = schema = import name). The migrating
role owns everything; a service connects as `tip_<name>`, which may use its own schema and what others grant it in
their `<name>_api` schemas, and may not change a table's definition.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, text

from chassis import db, logs

log = logs.get(__name__)

_LOCK = 7_246_001  # any number, as long as every migrating process uses the same


def services() -> list[str]:
    return sorted(found.name for found in entry_points(group="tip.services"))


def role(service: str) -> str:
    return f"tip_{service}"


def migrate(admin_url: str, role_passwords: Mapping[str, str]) -> None:
    """Bring every service's schema to its newest version. Safe to run by several processes at once."""
    with _locked(admin_url) as engine:
        with engine.begin() as tx:
            for service, password in role_passwords.items():
                _ensure_role(tx, role(service), password)
        for service in services():
            _upgrade(engine, service)


def downgrade(admin_url: str, service: str, revision: str = "base") -> None:
    """Take one service back to a revision, by default to nothing."""
    with _locked(admin_url) as engine, engine.begin() as tx:
        command.downgrade(_alembic(tx, service), revision)


def scripts(service: str) -> Path | None:
    """Where the service keeps its migrations: beside `src` in the repository, inside the package in a wheel."""
    found = find_spec(service)
    if found is None or found.origin is None:
        return None
    package = Path(found.origin).parent
    for place in (package / "migrations", package.parent.parent / "migrations"):
        if place.is_dir():
            return place
    return None


def _upgrade(engine: Engine, service: str) -> None:
    if scripts(service) is None:
        return
    with engine.begin() as tx:
        _ensure_schemas(tx, service)
        command.upgrade(_alembic(tx, service), "head")


def _alembic(tx: Connection, service: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "alembic"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(scripts(service)))
    config.attributes |= {"connection": tx, "schema": service}
    return config


def _ensure_role(tx: Connection, name: str, password: str) -> None:
    # CREATE ROLE takes no parameters; format() with %L quotes, so the password is data all the same.
    exists = tx.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": name}).first()
    statement = tx.execute(
        text("SELECT format(:verb || ' ROLE %I LOGIN PASSWORD %L', :name, :password)"),
        {"verb": "ALTER" if exists else "CREATE", "name": name, "password": password},
    ).scalar_one()
    tx.exec_driver_sql(statement.replace("%", "%%"))


def _ensure_schemas(tx: Connection, service: str) -> None:
    owner = role(service)
    for statement in (
        f"CREATE SCHEMA IF NOT EXISTS {service}",
        f"CREATE SCHEMA IF NOT EXISTS {service}_api",
        f"GRANT USAGE ON SCHEMA {service} TO {owner}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {service} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {owner}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {service} GRANT USAGE ON SEQUENCES TO {owner}",
    ):
        tx.exec_driver_sql(statement)


def publish(relation: str, *readers: str) -> str:
    """SQL that lets other services read a relation of an `_api` schema; for use in migrations."""
    schema = relation.split(".", maxsplit=1)[0]
    roles = ", ".join(role(reader) for reader in readers)
    return f"GRANT USAGE ON SCHEMA {schema} TO {roles}; GRANT SELECT ON {relation} TO {roles};"


@contextmanager
def _locked(admin_url: str) -> Iterator[Engine]:
    engine = create_engine(db.with_driver(admin_url), pool_size=2)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as guard:
            guard.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
            yield engine
            guard.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LOCK})
    finally:
        engine.dispose()
