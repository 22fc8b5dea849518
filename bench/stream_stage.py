"""What the stream benchmarks stand on: a migrated database, an organization whose accounts get events, and gateways."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any
from uuid import UUID

import grpc
import psycopg2
from sqlalchemy import create_engine, text

from chassis import db, hints, migrations
from tip_local.identity_seed import add_account
from tip_local.postgres import EmbeddedPostgres
from tip_local.processes import free_port
from tip_local.valkey import EmbeddedValkey
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import ROLES, Platform

QUICK = bool(os.environ.get("TIP_BENCH_QUICK"))
PAIRS = 1 if QUICK else 5
ORDER = {
    "intent_id": "5b3a7e0e-6c1f-4a3e-9d5f-2f0f6a1d9c11",
    "broker_order_id": "b-1",
    "symbol": "AAPL",
    "order_side": "BUY",
    "order_kind": "Limit",
    "status": "ACCEPTED",
    "quantity": "10",
    "filled_quantity": "0",
    "leaves_quantity": "10",
    "limit_price": "187.50",
}
_APPEND = text("""
    WITH head AS (
        INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
        VALUES (:account_id, :count, '', '')
        ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + :count
        RETURNING last_sequence
    )
    INSERT INTO intents.account_event (account_id, sequence, id, type, payload, occurred_at)
    SELECT :account_id, last_sequence - :count + number, gen_random_uuid(), 'BROKER_ORDER', :payload, now()
    FROM head, generate_series(1, CAST(:count AS bigint)) AS number
    RETURNING sequence
""")


@dataclass
class Stage:
    """A migrated database with an organization, whose accounts get events by `append`."""

    platform: Platform
    organization_id: UUID
    api_key: str

    def __post_init__(self) -> None:
        self._engine = create_engine(db.with_driver(self.platform.admin_url), pool_size=2)
        self._hints = hints.LogHeadHints(self.platform.redis_url)

    def account(self) -> UUID:
        with self.platform.admin() as admin:
            return add_account(admin, self.organization_id)

    def append(self, account_id: UUID, count: int = 1, payload: dict[str, Any] | None = None) -> int:
        with self._engine.begin() as tx:
            values = {"account_id": account_id, "count": count, "payload": dumps(payload or ORDER)}
            last = max(row[0] for row in tx.execute(_APPEND, values))
        self._hints.publish(account_id, last)
        return last


@contextmanager
def stage() -> Iterator[Stage]:
    with (
        tempfile.TemporaryDirectory(prefix="tip-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres", fast=True) as postgres,
        EmbeddedValkey(Path(folder) / "valkey", fast=True) as valkey,
    ):
        connection = psycopg2.connect(postgres.url)
        connection.autocommit = True
        connection.cursor().execute("CREATE DATABASE bench")
        connection.close()
        migrations.migrate(postgres.url_of("bench"), dict.fromkeys(ROLES, "for-tests-only"))
        platform = Platform(postgres.url_of("bench"), valkey.url)
        identity = IdentityFixtures(platform.administrator_environment("identity"))
        organization = identity.organization()
        yield Stage(platform, organization.id, organization.api_keys["paper"])
        identity.close()


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    target: str

    @property
    def memory_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


@contextmanager
def server(command: Sequence[str], port: int, environment: dict[str, str]) -> Iterator[Server]:
    process = subprocess.Popen([sys.executable, "-m", *command], env={**os.environ, **environment})
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=30)
    try:
        yield Server(process, f"127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def gateway(on: Stage, **settings: str) -> Iterator[Server]:
    port = free_port()
    own = {"PORT": str(port), "EVENTS_PORT": "0", "LOG_LEVEL": "warning", "STREAMS_PER_PRINCIPAL": "20000"}
    with server(["stream_gateway"], port, {**on.platform.environment("stream_gateway"), **own, **settings}) as started:
        yield started
