"""A migrated database for every test module, made in milliseconds from a template, and the people in it."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest
from sqlalchemy import Connection, NullPool, create_engine

from chassis import db, migrations, services
from tip_local.home import SIGNING_KEY, VAULT_KEY, random_key
from tip_local.pytest_plugin import PostgresServer, ValkeyServer, drop_database
from tip_local.world import World

ROLES = services.ROLES
_PASSWORD = "for-tests-only"  # noqa: S105 - the server is thrown away with the tests # nosec B105


@dataclass(frozen=True)
class Platform:
    """One migrated database, and how each service reaches it."""

    admin_url: str
    redis_url: str
    signing_key: str = field(default_factory=random_key, repr=False)
    vault_key: str = field(default_factory=random_key, repr=False)

    def database_url(self, name: str) -> str:
        """As the worker processes of a service connect; by the name of its web process, as that one does."""
        parts = urlsplit(self.admin_url)
        return urlunsplit(parts._replace(netloc=f"{migrations.role(name)}:{_PASSWORD}@{parts.hostname}:{parts.port}"))

    def environment(self, service: str, **more: str) -> dict[str, str]:
        """What the service's Config reads; `more` adds or replaces variables."""
        return {
            "DATABASE_URL": self.database_url(service),
            "REDIS_URL": self.redis_url,
            **self._sealing_key(service),
            "CURSOR_KEY": "for-tests-only",
            "LOG_FORMAT": "json",
            "VALIDATE_RATE_LIMIT_PER_MINUTE": "100000",
            "RATE_LIMIT_PER_MINUTE": "1000000",
            **more,
        }

    def _sealing_key(self, service: str) -> dict[str, str]:
        if service == "identity":
            return {SIGNING_KEY: self.signing_key}
        return {VAULT_KEY: self.vault_key} if service in ("accounts", "intents") else {}

    def web_environment(self, service: str, **more: str) -> dict[str, str]:
        """The same for its web process."""
        return self.environment(service, **{"DATABASE_URL": self.database_url(migrations.web_name(service)), **more})

    def administrator_environment(self, service: str, **more: str) -> dict[str, str]:
        """The same for commands that use the service's code with the administrator's rights."""
        return self.environment(service, **{"DATABASE_URL": self.admin_url, **more})

    @contextmanager
    def admin(self) -> Iterator[Connection]:
        """A connection that may do anything and commits at once, for looking behind the scenes."""
        engine = create_engine(db.with_driver(self.admin_url), poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            yield connection


def migrate(admin_url: str) -> None:
    """Every schema, and the roles with the passwords that `Platform.database_url` has."""
    migrations.migrate(admin_url, dict.fromkeys(ROLES, _PASSWORD))


@pytest.fixture(scope="session")
def template_database(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"tip_template_{secrets.token_hex(4)}"
    _execute(postgres_server.url, f'CREATE DATABASE "{name}"')
    migrate(postgres_server.url_of(name))
    yield name
    drop_database(postgres_server.url, name)


def _clone(postgres_server: PostgresServer, valkey_server: ValkeyServer, template: str) -> Iterator[Platform]:
    name = f"tip_test_{secrets.token_hex(6)}"
    _execute(postgres_server.url, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    # A copy is a log of its own: its epoch begins here, and not in the middle of a test.
    _execute(postgres_server.url_of(name), "SELECT intents_api.current_log_epoch()")
    yield Platform(postgres_server.url_of(name), valkey_server.url)
    drop_database(postgres_server.url, name)


@pytest.fixture(scope="module")
def platform(
    postgres_server: PostgresServer, valkey_server: ValkeyServer, template_database: str
) -> Iterator[Platform]:
    """Shared by the tests of one module: make your own organization and leave the others alone."""
    yield from _clone(postgres_server, valkey_server, template_database)


@pytest.fixture
def fresh_platform(
    postgres_server: PostgresServer, valkey_server: ValkeyServer, template_database: str
) -> Iterator[Platform]:
    """For one test alone."""
    yield from _clone(postgres_server, valkey_server, template_database)


@pytest.fixture(scope="module")
def world(platform: Platform) -> Iterator[World]:
    world = World(platform.administrator_environment("identity"))
    yield world
    world.close()


def _execute(url: str, statement: str) -> None:
    connection = psycopg2.connect(url, connect_timeout=5)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()
