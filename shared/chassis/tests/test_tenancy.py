"""Row-level security, for every table there is: a new one cannot be forgotten."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest
from sqlalchemy import Connection, text

from chassis import migrations, tenancy
from chassis.db import TIME_LIMITS_MS as LIMITS
from chassis.services import ROLES
from tip_testing.platform_plugin import Platform

SCHEMAS = [service for service in migrations.services() if migrations.scripts(service)]
# Of no organization: what is about the platform itself.
PLATFORM = {
    "identity.service_account",
    "identity.signing_key",
    "intents.log_epoch",
    "intents.log_signing_key",
    *(f"{schema}.{table}" for schema in SCHEMAS for table in ("outbox_head", "outbox_completed", "outbox_backlog")),
    *(f"{schema}.schema_version" for schema in SCHEMAS),
    *(f"{schema}.feed_position" for schema in SCHEMAS if schema != "identity"),
}


def test_every_table_with_rows_of_tenants_has_row_level_security(platform: Platform) -> None:
    found = text("""
        SELECT CAST(c.oid AS regclass)::text AS name, relrowsecurity
        FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
        WHERE relkind IN ('r', 'p') AND nspname = ANY(:schemas)
    """)
    with platform.admin() as connection:
        rows = connection.execute(found, {"schemas": SCHEMAS}).all()
    tables = {row.name: row.relrowsecurity for row in rows}

    unprotected = {name for name, protected in tables.items() if not protected}
    assert unprotected == PLATFORM
    assert len(tables) > len(PLATFORM) + 20


def test_policies_are_for_the_two_groups_and_never_for_everybody(platform: Platform) -> None:
    found = text("SELECT DISTINCT unnest(roles)::text FROM pg_policies WHERE schemaname = ANY(:schemas)")
    with platform.admin() as connection:
        roles = set(connection.execute(found, {"schemas": SCHEMAS}).scalars())

    assert roles == {tenancy.WEB, tenancy.WORKER, migrations.role("accounts_web"), migrations.role("identity_web")}


POLICIES = text("SELECT tablename, policyname, roles, qual, with_check FROM pg_policies ORDER BY 1, 2")
OLDER = "= ANY (CAST((SELECT CAST(nullif(current_setting('tip.organizations', true), '') AS uuid[])) AS uuid[]))"


@pytest.fixture
def older_platform(fresh_platform: Platform) -> Platform:
    """With policies in the form that they had once, of two services."""
    with fresh_platform.admin() as connection:
        for table in ("intents.action", "intents.intent", "identity.organization"):
            column = "id" if table == "identity.organization" else "organization_id"
            connection.exec_driver_sql(f"ALTER POLICY tenant ON {table} USING ({column} {OLDER})")
    return fresh_platform


def test_migrating_rewords_older_policies_while_their_tables_are_used(
    older_platform: Platform, platform: Platform
) -> None:
    with platform.admin() as connection:
        wanted = connection.execute(POLICIES).all()

    with (
        ThreadPoolExecutor(1) as pool,
        older_platform.admin() as user,
        older_platform.admin() as reader,
        older_platform.admin() as other,
    ):
        user.exec_driver_sql("BEGIN; LOCK intents.intent IN ACCESS SHARE MODE")
        migrating = pool.submit(migrations.migrate, older_platform.admin_url, {})
        reader.exec_driver_sql("SET lock_timeout = '2s'")
        until = time.monotonic() + 3
        while time.monotonic() < until:
            reader.exec_driver_sql("SELECT 1 FROM intents.intent LIMIT 1")  # no longer than a try holds it up
        assert not migrating.done()
        other.exec_driver_sql("BEGIN; LOCK intents.action, identity.organization IN ACCESS SHARE MODE NOWAIT; ROLLBACK")
        user.exec_driver_sql("ROLLBACK")
        migrating.result(60)
        assert user.execute(POLICIES).all() == wanted


def test_migrating_leaves_the_policy_of_a_table_that_stays_in_use_to_the_next_run(
    older_platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "_LOCK_TRIES", 2)
    outdated = text("SELECT tablename FROM pg_policies WHERE policyname = 'tenant' AND qual LIKE '%% = ANY (%%'")
    with ThreadPoolExecutor(1) as pool, older_platform.admin() as user, older_platform.admin() as reader:
        user.exec_driver_sql("BEGIN; LOCK intents.intent IN ACCESS SHARE MODE")
        pool.submit(migrations.migrate, older_platform.admin_url, {}).result(60)
        assert reader.execute(outdated).scalars().all() == ["intent"]

        user.exec_driver_sql("ROLLBACK")
        migrations.migrate(older_platform.admin_url, {})
        assert reader.execute(outdated).scalars().all() == []


OF_USERS = (
    "app_user",
    "password",
    "one_time_code",
    "totp",
    "sign_in_session",
    "oauth_client",
    "token_family",
    "authorization_code",
    "device_code",
    "refresh_token",
)
# Policies of single web processes: for users and what they sign in with, which are of no organization; and for
# operators, whose transactions say they serve all.
OF_NO_ORGANIZATION = {
    ("accounts.outbox", "operator", "tip_accounts_web"),
    *((f"identity.{table}", "users", "tip_identity_web") for table in OF_USERS),
    *(
        (f"identity.{table}", "operator", "tip_identity_web")
        for table in ("organization", "membership", "entitlement", "api_key", "outbox", "audit_entry", "invitation")
    ),
}


def admitting(connection: Connection, *, naming_organizations: bool) -> set[tuple[str, str, str]]:
    """Table, policy and role, for every role but the workers' group."""
    found = text("""
        SELECT schemaname || '.' || tablename, policyname, unnest(roles)::text AS role FROM pg_policies
        WHERE schemaname = ANY(:schemas) AND roles <> ARRAY[CAST(:worker AS name)] AND :naming = (
            coalesce(qual LIKE '%tip.organizations%', true) AND coalesce(with_check LIKE '%tip.organizations%', true))
    """)
    values = {"schemas": SCHEMAS, "worker": tenancy.WORKER, "naming": naming_organizations}
    return {(table, policy, role) for table, policy, role in connection.execute(found, values)}


def test_a_policy_that_admits_a_web_process_names_the_organization(platform: Platform) -> None:
    with platform.admin() as connection:
        assert len(admitting(connection, naming_organizations=True)) > 20
        assert admitting(connection, naming_organizations=False) == OF_NO_ORGANIZATION


@pytest.mark.parametrize("role", ["tip_accounts_web", "tip_web", "public"])
@pytest.mark.parametrize("condition", ["USING (true)", "USING ({named}) WITH CHECK (true)"], ids=["reads", "writes"])
def test_a_policy_that_names_no_organization_is_seen_whomever_it_admits(
    fresh_platform: Platform, role: str, condition: str
) -> None:
    named = tenancy.visible("organization_id")
    with fresh_platform.admin() as connection:
        connection.execute(text(f"CREATE POLICY hole ON accounts.account TO {role} {condition.format(named=named)}"))

        assert admitting(connection, naming_organizations=False) == OF_NO_ORGANIZATION | {
            ("accounts.account", "hole", role)
        }


def test_views_do_not_show_what_their_reader_may_not_see(platform: Platform) -> None:
    """A view reads as its owner, who sees everything, unless it says otherwise."""
    found = text("""
        SELECT CAST(c.oid AS regclass)::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
        WHERE relkind = 'v' AND regexp_replace(nspname, '_api$', '') = ANY(:schemas)
          AND NOT coalesce('security_invoker=true' = ANY(reloptions), false)
    """)
    with platform.admin() as connection:
        as_owner = set(connection.execute(found, {"schemas": SCHEMAS}).scalars())

    assert as_owner == set()


@pytest.mark.parametrize("name", ROLES)
def test_no_role_owns_a_table_or_goes_around_row_level_security(platform: Platform, name: str) -> None:
    values = {"role": migrations.role(name)}
    with platform.admin() as connection:
        rights = connection.execute(
            text("SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = :role"),
            values,
        ).one()
        owned = connection.execute(
            text("SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = :role"), values
        ).scalar_one()

    assert (tuple(rights), owned) == ((False, False, False, False), 0)


@pytest.mark.parametrize("name", ROLES)
def test_a_web_process_is_no_worker(platform: Platform, name: str) -> None:
    groups = text("SELECT pg_has_role(:role, :web, 'MEMBER'), pg_has_role(:role, :worker, 'MEMBER')")
    values = {"role": migrations.role(name), "web": tenancy.WEB, "worker": tenancy.WORKER}
    with platform.admin() as connection:
        is_web, is_worker = connection.execute(groups, values).one()

    assert (is_web, is_worker) == (name in migrations.web_names(), name not in migrations.web_names())


@pytest.mark.parametrize("name", ROLES)
def test_a_role_s_statements_end_also_when_nobody_says_so_at_connecting(platform: Platform, name: str) -> None:
    connection = psycopg2.connect(platform.database_url(name))
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT name, setting::integer FROM pg_settings WHERE name = ANY(%s)", [list(LIMITS)])
            assert dict(cursor.fetchall()) == LIMITS
    finally:
        connection.close()
