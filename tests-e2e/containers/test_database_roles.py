"""Each service is its own database role and may touch nobody else's tables."""

import json
from typing import Any

import pytest

from chassis import migrations
from chassis.services import SERVICES

# Runs inside the service's container, with the service's own address of the database.
SCRIPT = """
import json, os, sys, psycopg2
schemas = json.loads(sys.argv[1])
connection = psycopg2.connect(os.environ["DATABASE_URL"])
connection.autocommit = True
cursor = connection.cursor()
def outcome(statement):
    try:
        cursor.execute(statement)
        return "allowed"
    except psycopg2.Error as error:
        return error.pgcode
def rows(query, *values):
    cursor.execute(query, values)
    return cursor.fetchall()
found = {"foreign": {}, "own": {}, "views": {}}
found["role"] = list(rows("SELECT rolname, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles "
                          "WHERE rolname = current_user")[0])
relations = rows("SELECT n.nspname, c.relname, c.relkind::text, c.oid FROM pg_class c "
                 "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm') "
                 "AND regexp_replace(n.nspname, '_api$', '') = ANY(%s)", schemas)
for schema, table, kind, oid in relations:
    mine, published = found["role"][0] in ("tip_" + schema, "tip_" + schema + "_web"), schema.endswith("_api")
    name = f'"{schema}"."{table}"'
    tried = {"read": f"SELECT 1 FROM {name} LIMIT 1", "delete": f"DELETE FROM {name} WHERE false"}
    tried = {f"{verb} {schema}.{table}": outcome(statement) for verb, statement in tried.items()}
    granted = rows("SELECT has_any_column_privilege(%s, 'INSERT, UPDATE, REFERENCES') "
                   "OR has_table_privilege(%s, 'DELETE, TRUNCATE, TRIGGER')", oid, oid)[0][0]
    tried[f"change {schema}.{table}"] = "allowed" if granted else "42501"
    found["views" if published else "own" if mine else "foreign"].update(tried)
found["define"] = [outcome("CREATE TABLE %s.x (a int)" % schema) for schema in schemas]
found["public"] = outcome("CREATE TABLE public.x (a int)")
print(json.dumps(found))
"""
REFUSED = "42501"
"""Insufficient privilege."""


@pytest.fixture(scope="module", params=SERVICES)
def found(request: pytest.FixtureRequest, containers: Any) -> dict[str, Any]:
    """What a service could do, tried from inside its own container."""
    name = request.param.replace("_", "-")
    code, output = containers.run_in(name, "python", "-c", SCRIPT, json.dumps(SERVICES))
    assert code == 0, output
    tried: dict[str, Any] = json.loads(output)
    assert tried["role"] == [migrations.role(migrations.web_name(request.param)), False, False, False]
    return tried


def test_a_service_touches_no_table_but_its_own(found: dict[str, Any]) -> None:
    assert len(found["foreign"]) > 30
    assert set(found["foreign"].values()) == {REFUSED}
    assert "allowed" in found["own"].values() or found["role"][0] == "tip_stream_gateway", "it has no tables"


def test_what_others_publish_is_read_and_never_changed(found: dict[str, Any]) -> None:
    allowed = {tried.split()[0] for tried, outcome in found["views"].items() if outcome == "allowed"}

    assert allowed == {"read"}


def test_a_service_defines_nothing(found: dict[str, Any]) -> None:
    assert "allowed" not in [*found["define"], found["public"]]


def test_every_service_has_a_password_of_its_own(containers: Any) -> None:
    read = "import os, urllib.parse as u; print(u.urlsplit(os.environ['DATABASE_URL']).password)"

    passwords = {containers.run_in(name.replace("_", "-"), "python", "-c", read)[1] for name in SERVICES}

    assert len(passwords) == len(SERVICES)


def test_the_secrets_of_another_service_are_not_in_the_container(containers: Any) -> None:
    others = ("identity_web", "accounts_web", "custody", "execution", "intents_signer")
    for service in ("controls", "intents", "stream-gateway", "identity-relay", "accounts-consumer"):
        folders = ("/run/tip/environment", *(f"/run/tip/{other}" for other in others), "/var/lib/tip")
        listed = containers.run_in(service, "ls", *folders)[1].split()
        assert "DATABASE_URL" in listed and not [name for name in listed if "KEY_ENCRYPTION_KEY" in name]
        assert "secrets.json" not in listed
