"""What the database holds of a tenant, as counts and digests: comparing two shows whether anything was changed."""

import time
from dataclasses import dataclass

import psycopg2
from attack_tenants import Tenant

# Changed by the platform itself, whoever calls: when a key was last used, when an account was last reconciled.
VOLATILE = ("last_used_at", "reconciled_at", "lease_token", "lease_until", "lease_holder", "updated_at",
            "market_value", "unrealized_profit", "last_price", "equity", "buying_power", "cash")  # fmt: skip
# Nobody's own: counters over all, and what is done with rows that have been delivered.
NOT_COMPARED = ("outbox", "statistic", "statistic_head", "signing_key", "broker_account", "broker_pace", "balance",
                "position", "quote", "day_equity")  # fmt: skip
_TABLES = """
    SELECT table_schema, table_name FROM information_schema.tables
    WHERE table_type = 'BASE TABLE' AND table_schema IN ('identity', 'accounts', 'controls', 'intents') ORDER BY 1, 2
"""


# An order that its broker has taken and not opened yet will still change, however long nothing happens before.
_MOVING = "SELECT EXISTS (SELECT FROM intents.broker_order o WHERE status IN ('STARTED', 'PENDING') AND o::text ~ %s)"

SETTLE_S, LOOK_S, QUIET_LOOKS = 120.0, 0.8, 5


@dataclass(frozen=True)
class Holding:
    rows: int
    digest: str


def holdings(admin_url: str, tenant: Tenant) -> dict[str, Holding]:
    """By table: the rows that hold any id or name of the tenant."""
    pattern = "|".join(tenant.marks)
    found = {}
    connection = psycopg2.connect(admin_url)
    with connection, connection.cursor() as cursor:
        cursor.execute(_TABLES)
        for schema, table in cursor.fetchall():
            if any(table.startswith(name) for name in NOT_COMPARED):
                continue
            cursor.execute(
                f"""
                SELECT count(*), coalesce(md5(string_agg(md5(content), '' ORDER BY md5(content))), '')
                FROM (SELECT (to_jsonb(t) - %s::text[])::text AS content
                      FROM {schema}.{table} t WHERE t::text ~ %s) rows
                """,
                (list(VOLATILE), pattern),
            )
            found[f"{schema}.{table}"] = Holding(*cursor.fetchone())
    connection.close()
    return found


def settled(admin_url: str, tenants: tuple[Tenant, ...]) -> dict[str, dict[str, Holding]]:
    """What they hold, by tenant, once the workers have nothing more to do about it."""
    deadline, equal, found = time.monotonic() + SETTLE_S, 0, dict[str, dict[str, Holding]]()
    while equal < QUIET_LOOKS or any(_is_moving(admin_url, tenant) for tenant in tenants):
        before, found = found, {tenant.name: holdings(admin_url, tenant) for tenant in tenants}
        equal = equal + 1 if found == before else 0
        if time.monotonic() > deadline:
            restless = {name: changes(before.get(name, {}), held) for name, held in found.items()}
            raise RuntimeError(f"rows do not come to rest: {restless}")
        time.sleep(LOOK_S)
    return found


def _is_moving(admin_url: str, tenant: Tenant) -> bool:
    connection = psycopg2.connect(admin_url)
    with connection, connection.cursor() as cursor:
        cursor.execute(_MOVING, ("|".join(tenant.marks),))
        [is_moving] = cursor.fetchone()
    connection.close()
    return bool(is_moving)


def changes(before: dict[str, Holding], after: dict[str, Holding]) -> list[str]:
    return [
        f"{table}: {before[table].rows} rows before, {after[table].rows} after"
        for table in before
        if before[table] != after.get(table)
    ]
