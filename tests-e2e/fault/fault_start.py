"""Starts the whole platform for a run: datastores, schema, data, and every process by itself."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import requests
from fault_brokers import Brokers
from fault_processes import Child
from fault_stack import DATABASE, Stack, wait_until_ready
from sqlalchemy import NullPool, create_engine, text

from chassis import db, migrations
from chassis.services import ROLES, WEB_SERVICES
from tip_local.home import random_key
from tip_local.identity_seed import add_account
from tip_local.postgres import EmbeddedPostgres, create_database
from tip_local.valkey import EmbeddedValkey
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.ports import reserved_port

TOKEN_SECONDS = 4 * 3600
_PASSWORD = "for-this-run-only"
# What the contract promises does not depend on these; short ones let more happen in the same time.
QUICK_TIMES = {
    "BROKER_READ_SECONDS": "0.6",
    "BROKER_CONNECT_SECONDS": "0.2",
    "EXECUTOR_LEASE_SECONDS": "2.5",
    "QUERY_AFTER_SECONDS": "1.5",
    "QUERY_EVERY_SECONDS": "0.5",
    "RECONCILE_SECONDS": "1",
}
TIMES = {"BROKER_READ_SECONDS": "3", "RECONCILE_SECONDS": "5"}

InFront = Callable[[int], int]
"""Puts something in front of the broker's port and answers the port that the platform is to use."""


@contextmanager
def stack(
    *, accounts: int, executors: int, quick: bool, seed: int, in_front_of_broker: InFront = lambda port: port,
    thirds: bool = False, **settings: str,
) -> Iterator[Stack]:  # fmt: skip
    """`thirds`: a third of the accounts each at the paper broker, at a FIX broker and at a crypto exchange.

    `settings` are environment variables of every process of the platform, over those of `quick`.
    """
    with ExitStack() as opened:
        directory = Path(f"/tmp/tip-fault-{secrets.token_hex(4)}")
        directory.mkdir(mode=0o755)
        postgres = opened.enter_context(EmbeddedPostgres(directory / "postgres", fast=quick))
        valkey = opened.enter_context(EmbeddedValkey(directory / "valkey", fast=quick))
        create_database(postgres.url, DATABASE)
        migrations.migrate(postgres.url_of(DATABASE), dict.fromkeys(ROLES, _PASSWORD))
        _vacuum_between_restarts(postgres)
        common = {
            "REDIS_URL": valkey.url,
            "SIGNING_KEY_ENCRYPTION_KEY": random_key(),
            "VAULT_KEY_ENCRYPTION_KEY": random_key(),
            "CURSOR_KEY": secrets.token_hex(16),
            "RATE_LIMIT_PER_MINUTE": "100000000",
            "LOG_FORMAT": "json",
            **(QUICK_TIMES if quick else TIMES),
            **settings,
        }
        others = Brokers(directory, accounts // 3, seed) if thirds else None
        at_paper = accounts - 2 * (accounts // 3) if thirds else accounts
        made = _populated(directory, postgres, valkey, common, at_paper, seed)
        if others:
            made.others, common = others, common | others.environment
            made.children += others.children(made.admin_url)
            opened.callback(others.line.close)
        made.children += _children(made, common, executors, in_front_of_broker(made.broker_port), quick, seed)
        opened.callback(made.stop)
        for child in made.children:
            child.start()
        wait_until_ready(made)
        _connect_accounts(made)
        yield made


def _connect_accounts(made: Stack) -> None:
    """At the other brokers, by the API, as an administrator does it."""
    headers = {"Authorization": f"Bearer {made.organization.tokens['admin']}"}
    for broker, secret in made.others.secrets() if made.others else ():
        body = {"name": broker, "broker": broker, "environment": "paper"}
        account = requests.post(f"{made.base_url}/v1/accounts", json=body, headers=headers, timeout=30)
        account.raise_for_status()
        made.brokers[account.json()["id"]] = broker
        path = f"{made.base_url}/v1/accounts/{account.json()['id']}/credentials"
        requests.post(path, json={"label": "run", "secret": secret}, headers=headers, timeout=30).raise_for_status()


def _vacuum_between_restarts(postgres: EmbeddedPostgres) -> None:
    """A killed Postgres forgets what there is to vacuum: with a kill a minute, what waits long waits for ever."""
    url = db.with_driver(postgres.url_of(DATABASE))
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("ALTER SYSTEM SET autovacuum_naptime = '5s'"))
        connection.execute(text("SELECT pg_reload_conf()"))
        tables = "SELECT CAST(oid AS regclass) FROM pg_class WHERE relnamespace = CAST('intents' AS regnamespace)"
        for table in connection.execute(text(f"{tables} AND relkind = 'r'")).scalars().all():
            thresholds = (f"autovacuum_{of}_threshold" for of in ("vacuum", "vacuum_insert", "analyze"))
            connection.execute(text(f"ALTER TABLE {table} RESET ({', '.join(thresholds)})"))


def _url(postgres: EmbeddedPostgres, role: str) -> str:
    return f"postgresql://tip_{role}:{_PASSWORD}@127.0.0.1:{postgres.port}/{DATABASE}"


def _populated(
    directory: Path, postgres: EmbeddedPostgres, valkey: EmbeddedValkey, common: dict[str, str], accounts: int,
    seed: int,
) -> Stack:  # fmt: skip
    identity = IdentityFixtures({**common, "DATABASE_URL": postgres.url_of(DATABASE)}, token_lifetime_s=TOKEN_SECONDS)
    organization = identity.organization(entitlements=("controls_premium", "trading_live"))
    identity.close()
    engine = create_engine(db.with_driver(postgres.url_of(DATABASE)), poolclass=NullPool)
    with engine.begin() as connection:
        made = tuple(add_account(connection, organization.id, "paper") for _ in range(accounts))
    web, broker, stream, events = (reserved_port() for _ in range(4))
    built = Stack(directory, postgres, valkey, organization, made, web, broker, stream, events)
    built.dice.seed(seed)
    return built


def _children(
    made: Stack, common: dict[str, str], executors: int, broker_port: int, quick: bool, seed: int
) -> list[Child]:
    common = {**common, "PAPER_BROKER_URL": f"http://127.0.0.1:{broker_port}"}
    children: list[Child] = []

    def child(kind: str, *module: str, environment: dict[str, str]) -> None:
        log = made.directory / f"{kind}-{len(children)}.log"
        children.append(Child(kind, ["-m", *module], environment, log))

    def workers(service: str, *jobs: str) -> None:
        own = {**common, "DATABASE_URL": _url(made.postgres, service)}
        for job in jobs:
            kind = job if service == "intents" else f"{service}-{job}"
            child(kind, f"{service}.worker", job, environment=own)

    child("paper", "paper_broker", environment=_broker_environment(made, quick, seed))
    web = ("gunicorn", "-c", "python:chassis.gunicorn_conf", "tip_local.web:create_front()")
    child("web", *web, environment=common | _web_environment(made))
    child("gateway", "stream_gateway", environment=common | _gateway_environment(made))
    workers("intents", *["executor"] * executors, "relay", "relay", "reconciler", "consumer", "scheduler")
    child("signer", "intents.worker", "signer", environment=common | _signer_environment(made))
    workers("accounts", "relay", "consumer")
    workers("controls", "relay", "consumer")
    workers("identity", "relay", "scheduler")
    return children


def _broker_environment(made: Stack, quick: bool, seed: int) -> dict[str, str]:
    return {
        "PAPER_BROKER_PORT": str(made.broker_port),
        "PAPER_BROKER_OPERATOR_TOKEN": made.operator_token,
        "PAPER_BROKER_DATA": str(made.directory / "paper"),
        "PAPER_BROKER_CASH": "900000000",
        "PAPER_BROKER_PRICES": "fixed",
        "PAPER_BROKER_SEED": str(seed),
        "PAPER_BROKER_HANG_MILLIS": "1000" if quick else "4000",
    }


def _web_environment(made: Stack) -> dict[str, str]:
    urls = {
        f"{service.upper()}_DATABASE_URL": _url(made.postgres, migrations.web_name(service)) for service in WEB_SERVICES
    }
    return {
        **urls,
        "WEB_PORT": str(made.web_port),
        "WEB_WORKERS": "2",
        "EVENTS_URL": made.events_url,
        "INTERNAL_ORGANIZATIONS": str(made.organization.id),
    }


def _signer_environment(made: Stack) -> dict[str, str]:
    return {"DATABASE_URL": _url(made.postgres, "intents_signer"), "LOG_SIGNING_KEY": random_key()}


def _gateway_environment(made: Stack) -> dict[str, str]:
    return {
        "DATABASE_URL": _url(made.postgres, "stream_gateway"),
        "PORT": str(made.stream_port),
        "EVENTS_PORT": str(made.events_port),
        "HEARTBEAT_SECONDS": "2",
    }
