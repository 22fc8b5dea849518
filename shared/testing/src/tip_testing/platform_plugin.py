"""A migrated database for every test module, made in milliseconds from a template, and the people in it."""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest
from sqlalchemy import Connection, Engine, NullPool, create_engine

from chassis import db, migrations, services
from identity import usecases
from tip_local.home import SIGNING_KEY, VAULT_KEY, random_key
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.servers_plugin import PostgresServer, ValkeyServer, drop_database

ROLES = services.ROLES
_PASSWORD = "for-tests-only"


@dataclass(frozen=True)
class Platform:
    """One migrated database, and how each service reaches it."""

    admin_url: str
    redis_url: str
    signing_key: str = field(default_factory=random_key, repr=False)
    vault_key: str = field(default_factory=random_key, repr=False)

    @property
    def database(self) -> str:
        return urlsplit(self.admin_url).path.removeprefix("/")

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
        """A connection that may do anything and commits at once, for reading and changing what no service may."""
        with _admin_engine(self.admin_url).connect() as connection:
            yield connection


@cache
def _admin_engine(url: str) -> Engine:
    """The first connection of an engine costs as much as several others."""
    return create_engine(db.with_driver(url), poolclass=NullPool, isolation_level="AUTOCOMMIT")


def migrate(admin_url: str) -> None:
    """Every schema, and the roles with the passwords that `Platform.database_url` has."""
    migrations.migrate(admin_url, dict.fromkeys(ROLES, _PASSWORD))


@pytest.fixture(scope="session")
def template(postgres_server: PostgresServer, valkey_server: ValkeyServer) -> Iterator[Platform]:
    """Migrated, with a key that signs tokens: making one for each module takes longer than making its database."""
    name = f"tip_template_{secrets.token_hex(4)}"
    _execute(postgres_server.url, f'CREATE DATABASE "{name}"')
    made = Platform(postgres_server.url_of(name), valkey_server.url)
    migrate(made.admin_url)
    with closing(IdentityFixtures(made.administrator_environment("identity"))) as identity:
        usecases.public_keys(identity.deps)
    yield made
    drop_database(postgres_server.url, name)


@pytest.fixture(scope="session")
def template_database(template: Platform) -> str:
    return template.database


@contextmanager
def _clone(postgres_server: PostgresServer, template: Platform) -> Iterator[Platform]:
    name = f"tip_test_{secrets.token_hex(6)}"
    _execute(postgres_server.url, f'CREATE DATABASE "{name}" TEMPLATE "{template.database}" STRATEGY file_copy')
    # A copy is a log of its own: its epoch begins here, and not in the middle of a test.
    _execute(postgres_server.url_of(name), "SELECT intents_api.current_log_epoch()")
    yield replace(template, admin_url=postgres_server.url_of(name), vault_key=random_key())
    drop_database(postgres_server.url, name)


@pytest.fixture(scope="module")
def platform(postgres_server: PostgresServer, template: Platform) -> Iterator[Platform]:
    """Shared by the tests of one module: make your own organization and leave the others alone."""
    with _clone(postgres_server, template) as made:
        yield made


@pytest.fixture
def fresh_platform(postgres_server: PostgresServer, template: Platform) -> Iterator[Platform]:
    """For one test alone; nothing has been signed in it yet."""
    with _clone(postgres_server, template) as made:
        _execute(made.admin_url, "DELETE FROM identity.signing_key")
        yield replace(made, signing_key=random_key())


@pytest.fixture(scope="module")
def identity(platform: Platform) -> Iterator[IdentityFixtures]:
    with closing(IdentityFixtures(platform.administrator_environment("identity"))) as identity:
        yield identity


def _execute(url: str, statement: str) -> None:
    connection = psycopg2.connect(url, connect_timeout=5)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()
