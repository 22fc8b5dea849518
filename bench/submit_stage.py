"""What the submit benchmarks stand on: a durable Postgres, a Valkey, a migrated schema, accounts, and web processes."""

import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from sqlalchemy import NullPool, create_engine

from chassis import db, migrations
from chassis.services import ROLES
from tip_local.home import random_key
from tip_local.identity_seed import add_account
from tip_local.postgres import EmbeddedPostgres, create_database
from tip_local.processes import free_port
from tip_local.valkey import EmbeddedValkey
from tip_testing.identity_fixtures import IdentityFixtures

ACCOUNTS = 256
DATABASE = "bench"
_PASSWORD = "for-the-benchmark-only"


@dataclass(frozen=True)
class Stage:
    """Everything is as in production, durability included, except that nobody is refused for sending too much."""

    postgres: EmbeddedPostgres
    environment: dict[str, str]
    directory: Path
    api_key: str
    accounts: tuple[UUID, ...]

    @property
    def admin_url(self) -> str:
        return self.postgres.url_of(DATABASE)

    def url_of(self, role: str) -> str:
        return _url(self.postgres, role)

    def execute(self, statements: str) -> None:
        engine = create_engine(db.with_driver(self.admin_url), poolclass=NullPool)
        with engine.begin() as connection:
            connection.exec_driver_sql(statements.replace("%", "%%"))

    @property
    def script(self) -> str:
        """The Lua of wrk: a limit order on one of the accounts, another one each time."""
        accounts = ", ".join(f'"{account}"' for account in self.accounts)
        return f"""
            local accounts = {{ {accounts} }}
            local body = '{{"command":{{"type":"CREATE","payload":{{"symbol":"AAPL","order_side":"BUY",' ..
                '"spec":{{"Limit":{{"quantity":"10","limit_price":"99.50"}}}}}}}}}}'
            local headers = {{ ["Content-Type"] = "application/json", ["x-api-key"] = "{self.api_key}" }}
            math.randomseed(os.time())
            request = function()
                local path = "/v1/accounts/" .. accounts[math.random(#accounts)] .. "/intents"
                return wrk.format("POST", path, headers, body)
            end
        """

    def pgbench(self, script: str, clients: int, seconds: int) -> float:
        """Transactions a second of the script with so many clients."""
        file = self.directory / "transaction.sql"
        file.write_text(script)
        options = ["-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(seconds), "-f", str(file)]
        done = subprocess.run(
            [str(self.postgres.binary("pgbench")), *options, self.admin_url],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"bench: pgbench failed: {done.stderr.strip()[-500:]}")
        line = next(line for line in done.stdout.splitlines() if line.startswith("tps"))
        return float(line.split()[2])

    @contextmanager
    def web(self, name: str, command: list[str], port: int, **environment: str) -> Iterator[str]:
        """A web process of our own, its log in a file, until the end of the block."""
        with (self.directory / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, *command],
                env={**os.environ, **self.environment, **environment},
                stdout=log,
                stderr=log,
            )
            try:
                base = f"http://127.0.0.1:{port}"
                _wait_for(f"{base}/health/live", process)
                yield base
            finally:
                process.terminate()
                process.wait(20)

    @contextmanager
    def running(self, command: list[str], role: str = "intents", **environment: str) -> Iterator[None]:
        """A process that is no web process, under that role of the database, until the end of the block."""
        own = {"DATABASE_URL": self.url_of(role), **environment}
        with (self.directory / "process.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, *command], env={**os.environ, **self.environment, **own}, stdout=log, stderr=log
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)

    @contextmanager
    def intents(self, front: str = "intents.app:create_front()", **environment: str) -> Iterator[str]:
        port = free_port()
        options = ["-m", "gunicorn", "-c", "python:chassis.gunicorn_conf", "--bind", f"127.0.0.1:{port}"]
        with self.web(f"intents-{port}", [*options, front], port, **environment) as base:
            yield base


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except (urllib.error.URLError, OSError):
            if process.poll() is not None:
                sys.exit("bench: the web process ended before it answered")
            time.sleep(0.1)
        else:
            return
    sys.exit("bench: the web process does not answer")


@contextmanager
def stage() -> Iterator[Stage]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tip-")))
        directory.chmod(0o755)
        postgres = stack.enter_context(EmbeddedPostgres(directory / "postgres", fast=False))
        valkey = stack.enter_context(EmbeddedValkey(directory / "valkey"))
        create_database(postgres.url, DATABASE)
        migrations.migrate(postgres.url_of(DATABASE), dict.fromkeys(ROLES, _PASSWORD))
        yield _populated(postgres, valkey.url, directory)


def _url(postgres: EmbeddedPostgres, role: str) -> str:
    return f"postgresql://tip_{role}:{_PASSWORD}@127.0.0.1:{postgres.port}/{DATABASE}"


def _populated(postgres: EmbeddedPostgres, redis_url: str, directory: Path) -> Stage:
    environment = {
        "REDIS_URL": redis_url,
        "SIGNING_KEY_ENCRYPTION_KEY": random_key(),
        "CURSOR_KEY": secrets.token_hex(16),
        "RATE_LIMIT_PER_MINUTE": "100000000",
        "LOG_FORMAT": "json",
    }

    identity = IdentityFixtures({**environment, "DATABASE_URL": postgres.url_of(DATABASE)})
    organization = identity.organization(entitlements=("trading_live",))
    engine = create_engine(db.with_driver(postgres.url_of(DATABASE)), poolclass=NullPool)
    with engine.begin() as connection:
        accounts = tuple(add_account(connection, organization.id, "live") for _ in range(ACCOUNTS))
    identity.close()
    environment["DATABASE_URL"] = _url(postgres, "intents_web")
    return Stage(postgres, environment, directory, organization.api_keys["live"], accounts)
