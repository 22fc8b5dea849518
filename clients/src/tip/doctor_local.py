"""What `tip doctor` checks where the platform runs: its processes, its database, its migrations."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from tip.doctor_checks import Check, attempt
from tip_local import control
from tip_local.errors import Fault
from tip_local.settings import Settings as LocalSettings


def local_checks(url: str) -> Iterator[Check]:
    """Nothing if the platform that is called is not the one of this machine."""
    status = attempt("processes", lambda: control.status(LocalSettings.from_env()))
    if isinstance(status, Check):
        yield status
        return
    if status is None or status.local.get("base_url") != url:
        return
    yield processes_check({process.name: process.state for process in status.processes})
    yield from database_checks()


def database_checks() -> Iterator[Check]:
    from tip_local.probes import one_line

    no_database = import_module("sqlalchemy.exc").SQLAlchemyError
    try:
        server, applied = database_facts()
    except (Fault, no_database) as error:
        why = one_line(getattr(error, "orig", None) or error)  # what the driver says, without SQLAlchemy's notes
        yield Check("database", "failed", f"the database cannot be read: {why}", "tip logs")
        return
    yield Check("database", "ok", f"Postgres {server}")
    yield migrations_check(applied, newest_migrations())


def processes_check(states: Mapping[str, str]) -> Check:
    waiting = {name: state for name, state in states.items() if state != "ready"}
    if not waiting:
        return Check("processes", "ok", f"{len(states)} processes are ready")
    shown = ", ".join(f"{name} is {state}" for name, state in waiting.items())
    return Check("processes", "failed", shown, f"tip logs {next(iter(waiting))}")


def migrations_check(applied: Mapping[str, str | None], newest: Mapping[str, str]) -> Check:
    behind = [name for name, revision in newest.items() if applied.get(name) != revision]
    if not behind:
        return Check("migrations", "ok", "migrations current")
    return Check("migrations", "failed", f"migrations are missing in {', '.join(behind)}", "tip migrate")


def database_facts() -> tuple[str, dict[str, str | None]]:
    """The server's version, and the revision that each service's schema has."""
    sqlalchemy, db = import_module("sqlalchemy"), import_module("chassis.db")
    with import_module("tip_local.schema").database(LocalSettings.from_env()) as stack:
        engine = sqlalchemy.create_engine(db.with_driver(stack.admin_url), poolclass=sqlalchemy.NullPool)
        with engine.connect() as tx:
            server = str(tx.execute(sqlalchemy.text("SHOW server_version")).scalar_one()).split()[0]
            return server, {name: _revision(tx, name) for name in newest_migrations()}


def _revision(tx: Any, service: str) -> str | None:
    sql = import_module("sqlalchemy")
    if tx.execute(sql.text("SELECT to_regclass(:name)"), {"name": f"{service}.schema_version"}).scalar_one() is None:
        return None
    versions = sql.table("schema_version", sql.column("version_num"), schema=service)
    found: str | None = tx.execute(sql.select(sql.func.max(versions.c.version_num))).scalar_one()
    return found


def newest_migrations() -> dict[str, str]:
    """By the files: their names begin with the revision."""
    migrations = import_module("chassis.migrations")
    folders = {name: migrations.scripts(name) for name in migrations.services()}
    files = {name: sorted(folder.glob("[0-9]*.py")) for name, folder in folders.items() if folder}
    return {name: found[-1].name.partition("_")[0] for name, found in files.items() if found}
