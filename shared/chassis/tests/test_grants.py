"""What each role may do, in one list: `grants.txt` beside this file. Whoever changes a grant changes the list."""

import re
from pathlib import Path

from sqlalchemy import Connection, text

from chassis import migrations
from tip_testing.platform_plugin import Platform

LIST = Path(__file__).with_name("grants.txt")
SCHEMAS = [
    schema for service in migrations.services() if migrations.scripts(service) for schema in (service, f"{service}_api")
]

# Of relations by table and by column, of functions and schemas; the owner, who migrates, left out. Grantee 0 is PUBLIC.
GRANTS = text("""
    WITH granted AS (
        SELECT grantee, CAST(c.oid AS regclass)::text AS name, privilege_type AS privilege, NULL AS columns
        FROM pg_class c, aclexplode(relacl) WHERE relnamespace = ANY(CAST(:schemas AS regnamespace[]))
          AND relkind IN ('r', 'p', 'v', 'm', 'S') AND grantee <> relowner
        UNION ALL
        SELECT grantee, CAST(c.oid AS regclass)::text, privilege_type, string_agg(attname, ', ' ORDER BY attname)
        FROM pg_class c JOIN pg_attribute ON attrelid = c.oid, aclexplode(attacl)
        WHERE relnamespace = ANY(CAST(:schemas AS regnamespace[])) AND grantee <> relowner
        GROUP BY grantee, c.oid, privilege_type
        UNION ALL
        SELECT grantee, CAST(p.oid AS regprocedure)::text, privilege_type, NULL
        FROM pg_proc p, aclexplode(coalesce(proacl, acldefault('f', proowner)))
        WHERE pronamespace = ANY(CAST(:schemas AS regnamespace[])) AND grantee <> proowner
        UNION ALL
        SELECT grantee, 'schema ' || nspname, privilege_type, NULL
        FROM pg_namespace n, aclexplode(nspacl) WHERE n.oid = ANY(CAST(:schemas AS regnamespace[])::oid[])
          AND grantee <> nspowner
    )
    SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END AS role, name,
           string_agg(privilege || coalesce(' (' || columns || ')', ''), ', ' ORDER BY privilege, columns NULLS FIRST)
           AS privileges
    FROM granted GROUP BY 1, 2
""")


def listed(connection: Connection) -> list[str]:
    rows = connection.execute(GRANTS, {"schemas": SCHEMAS})
    return sorted(f"{row.role}: {row.name}: {row.privileges}" for row in rows)


def test_each_role_may_do_what_is_listed_and_nothing_else(platform: Platform) -> None:
    with platform.admin() as connection:
        assert listed(connection) == LIST.read_text().splitlines()


def test_nothing_is_granted_to_everybody() -> None:
    assert [line for line in LIST.read_text().splitlines() if line.startswith("PUBLIC")] == []


def test_nobody_may_empty_a_table_or_change_what_hangs_on_it() -> None:
    beyond = ("TRUNCATE", "TRIGGER", "REFERENCES", "MAINTAIN", "CREATE")

    assert [line for line in LIST.read_text().splitlines() if any(word in line for word in beyond)] == []


def test_the_log_is_appended_to_and_never_changed() -> None:
    logs = ("intents.action: ", "intents.account_event: ", "intents.log_epoch: ", "identity.audit_entry: ")
    lines = [line for line in LIST.read_text().splitlines() if any(log in line for log in logs)]

    assert lines
    assert [line for line in lines if "UPDATE" in line or "DELETE" in line] == []


def test_a_relay_makes_no_credential() -> None:
    lines = [line for line in LIST.read_text().splitlines() if line.startswith("tip_identity: identity.")]
    appended_to = ("tip_identity: identity.outbox", "tip_identity: identity.audit_entry: INSERT")
    beyond_outbox = [line for line in lines if not line.startswith(appended_to)]

    assert beyond_outbox
    assert [line for line in beyond_outbox if re.search(r"INSERT|UPDATE(?! \()", line)] == []
    assert {line.split(": ")[1] for line in beyond_outbox if "DELETE" in line} == {
        f"identity.{table}"
        for table in ("password", "totp", "one_time_code", "sign_in_session", "token_family", "device_code")
    }


def test_the_organizations_of_keys_are_read_only_where_keys_are_presented() -> None:
    lines = [line for line in LIST.read_text().splitlines() if "identity_api.organizations_of_keys" in line]

    assert [line.split(":")[0] for line in lines] == ["tip_identity_web", "tip_intents_web"]


def test_a_web_process_deletes_few_things() -> None:
    lines = [line for line in LIST.read_text().splitlines() if line.split(":")[0].endswith("_web") and "DELETE" in line]

    deleted = {line.split(": ")[1] for line in lines}
    assert deleted == {
        "accounts.outbox_backlog",
        "accounts.sealed_secret",
        "identity.api_key",
        "identity.entitlement",
        "identity.invitation",
        "identity.one_time_code",
        "identity.service_account",
        "identity.sign_in_session",
        "identity.totp",
    }
