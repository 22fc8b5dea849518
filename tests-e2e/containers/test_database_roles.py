"""Each service is its own database role and may touch nobody else's tables."""

import json
from typing import Any

import pytest

SERVICES = ("identity", "accounts", "controls", "intents")

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
cursor.execute("SELECT current_user, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user")
found = {"role": list(cursor.fetchone()), "foreign": {}, "own": {}}
cursor.execute("SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
               "WHERE c.relkind = 'r' AND n.nspname = ANY(%s)", (schemas,))
for schema, table in cursor.fetchall():
    mine = "tip_" + schema == found["role"][0]
    name = f'"{schema}"."{table}"'
    tried = {"read": f"SELECT 1 FROM {name} LIMIT 1", "delete": f"DELETE FROM {name} WHERE false"}
    for verb, statement in tried.items():
        found["own" if mine else "foreign"][f"{verb} {schema}.{table}"] = outcome(statement)
found["define"] = [outcome("CREATE TABLE %s.x (a int)" % schema) for schema in schemas]
found["public"] = outcome("CREATE TABLE public.x (a int)")
print(json.dumps(found))
"""


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_touches_no_table_but_its_own(containers: Any, service: str) -> None:
    schemas = [*SERVICES, "stream_gateway"]

    code, output = containers.run_in(service, "python", "-c", SCRIPT, json.dumps(schemas))

    assert code == 0, output
    found = json.loads(output)
    assert found["role"] == [f"tip_{service}", False, False, False]
    assert len(found["foreign"]) > 10
    assert set(found["foreign"].values()) == {"42501"}  # insufficient privilege
    assert "allowed" in found["own"].values()
    assert "allowed" not in [*found["define"], found["public"]]


def test_every_service_has_a_password_of_its_own(containers: Any) -> None:
    read = "import os, urllib.parse as u; print(u.urlsplit(os.environ['DATABASE_URL']).password)"

    passwords = {containers.run_in(service, "python", "-c", read)[1] for service in SERVICES}

    assert len(passwords) == len(SERVICES)


def test_the_secrets_of_another_service_are_not_in_the_container(containers: Any) -> None:
    for service in ("controls", "intents", "stream-gateway"):
        folders = ("/run/tip/environment", "/run/tip/accounts", "/run/tip/execution", "/var/lib/tip")
        listed = containers.run_in(service, "ls", *folders)[1].split()
        assert "DATABASE_URL" in listed and "KEY_ENCRYPTION_KEY" not in listed
        assert "secrets.json" not in listed
