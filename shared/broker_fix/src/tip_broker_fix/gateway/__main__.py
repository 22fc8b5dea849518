"""`python -m tip_broker_fix.gateway`: serve. `… prepare`: make the schema. `… secret ACCOUNT`: an account's key."""

import argparse
import asyncio
import logging
import os
import sys
from importlib.resources import files

import psycopg2
from psycopg2 import sql

from tip_broker_fix.gateway import credentials
from tip_broker_fix.gateway.app import serve
from tip_broker_fix.gateway.config import BadConfig, Config, Environment

ROLE = "tip_fix"


class Escaping(logging.Formatter):
    """Nothing that a terminal obeys gets into the log."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fix-gateway", description=__doc__)
    parser.add_argument("command", nargs="?", default="serve", choices=["serve", "prepare", "secret"])
    parser.add_argument("account", nargs="?")
    given = parser.parse_args(arguments)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Escaping("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    try:
        return COMMANDS[given.command](given.account or "")
    except (BadConfig, OSError, psycopg2.OperationalError) as error:
        sys.stderr.write(f"fix-gateway: {str(error).splitlines()[0]}\n")
        return 2


def serve_until_stopped(_account: str) -> int:
    asyncio.run(serve(Config.from_env()))
    return 0


def prepare(_account: str) -> int:
    """As administrator: the schema, and a role that may use and not change it. Safe to repeat."""
    given = Environment(os.environ)
    password = given.text("FIX_DATABASE_PASSWORD")
    connection = psycopg2.connect(given.text("FIX_ADMIN_DATABASE_URL"), connect_timeout=5)
    role = sql.Identifier(ROLE)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(7246028)")
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,))
        verb = sql.SQL("ALTER" if cursor.fetchone() else "CREATE")
        cursor.execute(sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(verb, role, sql.Literal(password)))
        cursor.execute(sql.SQL(files("tip_broker_fix.gateway").joinpath("schema.sql").read_text()).format(role=role))
    connection.close()
    return 0


def show_secret(account: str) -> int:
    key = Environment(os.environ).text("FIX_ACCOUNT_KEY")
    if not account:
        raise BadConfig("name the account")
    sys.stdout.write(credentials.secret_key(key, account) + "\n")
    return 0


COMMANDS = {"serve": serve_until_stopped, "prepare": prepare, "secret": show_secret}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
