"""Row-level security by organization: whose rows a transaction of a web process may touch.

A web process connects as `tip_<service>_web`. To that role Postgres shows, and from it takes, only rows of the
organizations named by the setting `tip.organizations`, which lasts for one transaction; without it there are none. The
worker processes (relays, consumers, executors, the stream gateway) work for all organizations and see all rows.

Who is served is known per request, not per connection: `access` says it here, and whoever begins a transaction
(`db.engine`, the submit fast path) sends `scope()` in front of its first statement, without a round trip of its own.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import UUID

WEB, WORKER = "tip_web", "tip_worker"
"""Groups: the policies are theirs, the processes' roles are members."""

_SETTING = "tip.organizations"
# In a subquery, so that it is evaluated once and not per row; the outer cast makes it one array and not a set of rows.
# An ended transaction leaves '' and not NULL behind.
_NAMED = f"CAST((SELECT CAST(nullif(current_setting('{_SETTING}', true), '') AS uuid[])) AS uuid[])"

_ALL = "SET LOCAL tip.all_organizations = 'on'"

_scope: ContextVar[str | None] = ContextVar("tenancy_scope", default=None)


def scope() -> str | None:
    """The statement that opens a transaction for those who are served now; None if nobody is served."""
    return _scope.get()


def serve(*organization_ids: UUID | None) -> None:
    """From now on this thread or task serves these organizations; without any it serves nobody."""
    _scope.set(_setting(organization_ids))


@contextmanager
def serving(organization_ids: Iterable[UUID | None]) -> Iterator[None]:
    token = _scope.set(_setting(organization_ids))
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def serving_keys(digests: Iterable[bytes]) -> Iterator[None]:
    """Serve whom these API keys belong to, which the database finds out in the same round trip."""
    given = ", ".join(f"'\\x{digest.hex()}'" for digest in sorted(set(digests)))
    whose = f"identity_api.organizations_of_keys(CAST(ARRAY[{given}] AS bytea[]))"
    token = _scope.set(f"SELECT set_config('{_SETTING}', {whose}, true)")
    try:
        yield
    finally:
        _scope.reset(token)


def serve_all() -> None:
    """From now on serve an operator, whose requests are about any organization, where a table has a policy for it."""
    _scope.set(_ALL)


@contextmanager
def serving_all() -> Iterator[None]:
    token = _scope.set(_ALL)
    try:
        yield
    finally:
        _scope.reset(token)


def _setting(organization_ids: Iterable[UUID | None]) -> str | None:
    ids = sorted({str(organization) for organization in organization_ids if organization is not None})
    return f"SET LOCAL {_SETTING} = '{{{','.join(ids)}}}'" if ids else None


def protect(table: str, organization: str = "organization_id") -> str:
    """SQL for migrations: rows belong to the organization in this column, or that this expression gives."""
    return f"""
        {protect_from_web(table)}
        CREATE POLICY tenant ON {table} TO {WEB} USING ({visible(organization)});
    """


def protect_from_web(table: str) -> str:
    """SQL for migrations: rows of all organizations, which no web process needs to see."""
    return f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        CREATE POLICY worker ON {table} TO {WORKER} USING (true);
    """


def admit_operators(table: str, role: str) -> str:
    """SQL for migrations: this role may also serve all organizations at once, when it says so."""
    all_served = "(SELECT current_setting('tip.all_organizations', true)) = 'on'"
    return f"CREATE POLICY operator ON {table} TO {role} USING ({all_served});"


def visible(organization: str) -> str:
    """The condition under which a row of this organization may be touched.

    In a form that enters no index. A statement that is planned while a table is empty would find its one row among all
    rows of the organization, by an index that begins with that, and do so until it is planned anew.
    """
    return f"({organization} <> ALL ({_NAMED})) IS FALSE"
