"""Schema migrations of every installed service, by one command under one lock.

A service announces itself by an entry point in the group `tip.services` (name = schema = import name). The migrating
role owns everything. A service's worker processes connect as `tip_<name>`, which may use its own schema and what others
grant it in their `<name>_api` schemas; its web process connects as `tip_<name>_web`, which has no more than the
migrations grant it by name, and sees rows by organization (`tenancy`). Neither may change a table's definition.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from chassis import db, logs, tenancy
from chassis.services import role, web_name, web_names

__all__ = [
    "downgrade",
    "make_roles",
    "migrate",
    "publish",
    "publish_function",
    "role",
    "scripts",
    "services",
    "web_name",
    "web_names",
]

log = logs.get(__name__)

_LOCK = 7_246_001  # any number, as long as every migrating process uses the same
_LOCK_TRIES, _LOCK_PAUSE_S = 50, 0.2
_OUTDATED = text("""
    SELECT CAST(polrelid AS regclass)::text, substring(pg_get_expr(polqual, polrelid) FROM '^\\((\\w+) = ANY \\(')
    FROM pg_policy JOIN pg_class c ON c.oid = polrelid
    WHERE relnamespace = CAST(:schema AS regnamespace) AND polname = 'tenant'
      AND pg_get_expr(polqual, polrelid) ~ '^\\(\\w+ = ANY \\(' ORDER BY 1
""")


def services() -> list[str]:
    return sorted(found.name for found in entry_points(group="tip.services"))


def migrate(admin_url: str, role_passwords: Mapping[str, str]) -> None:
    """Bring every service's schema to its newest version. Safe to run by several processes at once."""
    with _locked(admin_url) as engine:
        with engine.begin() as tx:
            _ensure_roles(tx, role_passwords)
        for service in services():
            _upgrade(engine, service)


def make_roles(admin_url: str, role_passwords: Mapping[str, str]) -> None:
    """Only the roles, which no dump of a database holds: before one is restored into an empty cluster."""
    with _locked(admin_url) as engine, engine.begin() as tx:
        _ensure_roles(tx, role_passwords)


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
    for folder in (package / "migrations", package.parent.parent / "migrations"):
        if folder.is_dir():
            return folder
    return None


def _upgrade(engine: Engine, service: str) -> None:
    if scripts(service) is None:
        return
    with engine.begin() as tx:
        _ensure_schemas(tx, service)
        command.upgrade(_alembic(tx, service), "head")
        _execute(tx, "REVOKE ALL ON %I.schema_version FROM %I", service, role(service))
    _reword_policies(engine, service)


def _reword_policies(engine: Engine, service: str) -> None:
    """Of a database that is older than how `tenancy.visible` says it now.

    Each in a transaction of its own, that waits only briefly: whoever has read the table holds up the change, which
    holds up whoever comes after it, and with two tables held at once there would be deadlocks. Both forms say the same,
    so a table that stays in use (a vacuum, a dump) is left to the next run.
    """
    with engine.begin() as tx:
        outdated = tx.execute(_OUTDATED, {"schema": service}).all()
    for table, column in outdated:
        for _ in range(_LOCK_TRIES):
            if _reworded(engine, table, column):
                break
            time.sleep(_LOCK_PAUSE_S)
        else:
            log.warning("policy_not_reworded", table=table, reason="the table was in use; migrate tries again")


def _reworded(engine: Engine, table: str, column: str) -> bool:
    """False while somebody uses the table."""
    try:
        with engine.begin() as tx:
            tx.exec_driver_sql("SET LOCAL lock_timeout = '100ms'")
            _execute(tx, f"ALTER POLICY tenant ON %s USING ({tenancy.visible('%I')})", table, column)
    except OperationalError as error:
        if db.is_lock_timeout(error):
            return False
        raise
    return True


def _alembic(tx: Connection, service: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "alembic"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(scripts(service)))
    config.attributes |= {"connection": tx, "schema": service}
    return config


def _ensure_roles(tx: Connection, role_passwords: Mapping[str, str]) -> None:
    for group in (tenancy.WEB, tenancy.WORKER):
        _ensure_group(tx, group)
    for name, password in role_passwords.items():
        _ensure_role(tx, role(name), password)
        group = tenancy.WEB if name in web_names() else tenancy.WORKER
        _execute(tx, "GRANT %I TO %I", group, role(name))
        for setting, milliseconds in db.TIME_LIMITS_MS.items():
            _execute(tx, "ALTER ROLE %I SET %I = %L", role(name), setting, str(milliseconds))


def _ensure_group(tx: Connection, name: str) -> None:
    if tx.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": name}).first() is None:
        _execute(tx, "CREATE ROLE %I NOLOGIN", name)


def _ensure_role(tx: Connection, name: str, password: str) -> None:
    exists = tx.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": name}).first()
    _execute(tx, f"{'ALTER' if exists else 'CREATE'} ROLE %I LOGIN PASSWORD %L", name, password)


def _execute(tx: Connection, template: str, *values: str) -> None:
    """A statement that takes no parameters: Postgres itself quotes the names (%I) and values (%L)."""
    quoted = text("SELECT format(:template, VARIADIC CAST(:values AS text[]))")
    statement = tx.execute(quoted, {"template": template, "values": list(values)}).scalar_one()
    tx.exec_driver_sql(statement.replace("%", "%%"))


def _ensure_schemas(tx: Connection, service: str) -> None:
    owner = role(service)
    for statement in (
        f"CREATE SCHEMA IF NOT EXISTS {service}",
        f"CREATE SCHEMA IF NOT EXISTS {service}_api",
        f"GRANT USAGE ON SCHEMA {service} TO {owner}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {service} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {owner}",
    ):
        tx.exec_driver_sql(statement)


def publish(view: str, *readers: str) -> str:
    """SQL for migrations: lets other services read a view of an `_api` schema.

    The view reads its tables with the rights of its reader, so that row-level security holds through it. For that the
    reader needs the columns the view is made of, and gets them; without USAGE on the owner's schema it reaches them
    only this way.
    """
    schema = view.split(".", maxsplit=1)[0]
    roles = ", ".join(map(role, readers))
    return f"""
        ALTER VIEW {view} SET (security_invoker = true);
        GRANT USAGE ON SCHEMA {schema} TO {roles};
        GRANT SELECT ON {view} TO {roles};
        {_GRANT_COLUMNS.format(view=view, roles=roles)}
    """


_GRANT_COLUMNS = """
DO $$
DECLARE
    source record;
BEGIN
    FOR source IN
        WITH RECURSIVE used AS (
            SELECT refobjid, refobjsubid FROM pg_rewrite JOIN pg_depend ON objid = pg_rewrite.oid
            WHERE ev_class = CAST('{view}' AS regclass) AND classid = CAST('pg_rewrite' AS regclass)
              AND refclassid = CAST('pg_class' AS regclass) AND refobjid <> ev_class
            UNION
            SELECT d.refobjid, d.refobjsubid
            FROM used JOIN pg_rewrite r ON r.ev_class = used.refobjid JOIN pg_depend d ON d.objid = r.oid
            WHERE d.classid = CAST('pg_rewrite' AS regclass) AND d.refclassid = CAST('pg_class' AS regclass)
              AND d.refobjid <> r.ev_class
        )
        SELECT CAST(refobjid AS regclass) AS name, string_agg(quote_ident(attname), ', ') AS columns
        FROM used JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid GROUP BY refobjid
    LOOP
        EXECUTE format('GRANT SELECT (%s) ON %s TO {roles}', source.columns, source.name);
    END LOOP;
END $$;
"""


def publish_function(function: str, *callers: str) -> str:
    """SQL for migrations: lets these and nobody else call a function."""
    schema = function.split(".", maxsplit=1)[0]
    roles = ", ".join(map(role, callers))
    return f"""
        GRANT USAGE ON SCHEMA {schema} TO {roles};
        REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC;
        GRANT EXECUTE ON FUNCTION {function} TO {roles};
    """


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
