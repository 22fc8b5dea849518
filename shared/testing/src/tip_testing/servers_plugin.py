"""Real servers for every test suite, started once per session and only when a test needs them.

TIP_TEST_POSTGRES_URL and TIP_TEST_REDIS_URL name existing servers to use instead (Postgres as a superuser).
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest
from psycopg2 import sql

from tip_local.postgres import EmbeddedPostgres, create_database
from tip_local.settings import default_home
from tip_local.valkey import EmbeddedValkey

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 3 * 2**30
_CHECKOUT = pytest.StashKey[object]()
_HOME = pytest.StashKey[str]()
_SERVER_LOGS = pytest.StashKey[list[Path]]()
_OF_THE_SERVER = ("LOG:", "FATAL:", "PANIC:")
SHOWN_LINES = 12


def pytest_configure(config: pytest.Config) -> None:
    """Commands under test use a home of their own: the checkout's may be that of a running platform."""
    config.stash[_CHECKOUT] = _trace_of_use(default_home())
    config.stash[_HOME] = os.environ["TIP_HOME"] = tempfile.mkdtemp(prefix="tip-home-")
    os.environ["TIP_YIELD"] = "no"  # The tests fill the machine, and wait for what works in the background.


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash.get(_HOME, ""), ignore_errors=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test that used the checkout's own home fails the run, whatever else passed."""
    if _trace_of_use(default_home()) != session.config.stash[_CHECKOUT]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _trace_of_use(default_home()) != config.stash[_CHECKOUT]:
        terminalreporter.write_line(f"a test wrote to {default_home()}: commands under test need TIP_HOME", red=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows what its Postgres said of itself: it may have been killed, or out of space."""
    report = yield
    if report.failed:
        for log in item.config.stash.get(_SERVER_LOGS, []):
            report.sections.append((f"Postgres, {log}", "\n".join(said_of_itself(log))))
    return report


def said_of_itself(log: Path) -> list[str]:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line for line in lines if any(level in line for level in _OF_THE_SERVER)][-SHOWN_LINES:]


def _trace_of_use(home: Path) -> object:
    """What the first use of a home leaves behind, and a platform that runs in it leaves alone."""
    secrets = home / "secrets.json"
    return home.exists(), secrets.stat().st_mtime_ns if secrets.exists() else None


@dataclass(frozen=True)
class PostgresServer:
    url: str
    embedded: EmbeddedPostgres | None
    """For tests that kill it; None when an existing server is used."""

    def url_of(self, database: str) -> str:
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{database}"))


@dataclass(frozen=True)
class ValkeyServer:
    url: str
    embedded: EmbeddedValkey | None


def new_directory(prefix: str) -> Path:
    """Short, unlike pytest's own: a Unix socket has to fit in it. In memory if there is enough: each test module has a
    database of its own, which is a thousand files."""
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH_BYTES
    return Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY if in_memory else None))


@pytest.fixture(scope="session")
def server_directory() -> Iterator[Path]:
    directory = new_directory("tip-")
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(server_directory: Path, pytestconfig: pytest.Config) -> Iterator[PostgresServer]:
    if existing := os.environ.get("TIP_TEST_POSTGRES_URL"):
        yield PostgresServer(existing, None)
        return
    with EmbeddedPostgres(server_directory / "postgres", fast=True) as server:
        pytestconfig.stash.setdefault(_SERVER_LOGS, []).append(server.log_file)
        yield PostgresServer(server.url, server)
    shutil.rmtree(server.directory, ignore_errors=True)  # not always the folder we named: see rootless


@pytest.fixture(scope="session")
def valkey_server(server_directory: Path) -> Iterator[ValkeyServer]:
    if existing := os.environ.get("TIP_TEST_REDIS_URL"):
        yield ValkeyServer(existing, None)
        return
    with EmbeddedValkey(server_directory / "valkey", fast=True) as server:
        yield ValkeyServer(server.url, server)


@pytest.fixture(scope="session")
def database_url(postgres_server: PostgresServer) -> Iterator[str]:
    """An empty database of this session's own, as superuser."""
    name = f"tip_test_{secrets.token_hex(6)}"
    create_database(postgres_server.url, name)
    yield postgres_server.url_of(name)
    drop_database(postgres_server.url, name)


def drop_database(server_url: str, name: str) -> None:
    connection = psycopg2.connect(server_url, connect_timeout=5)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
    finally:
        connection.close()
