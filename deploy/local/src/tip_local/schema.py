"""`tip migrate`: the schema alone, wherever the database is."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from tip_local import probes
from tip_local.errors import Fault
from tip_local.home import Home
from tip_local.postgres import create_database
from tip_local.process_table import module_exists
from tip_local.settings import Settings
from tip_local.stack import DATABASE, Stack, embedded_postgres, running_stack
from tip_local.up import migrate


def migrate_only(settings: Settings, *, down: bool) -> None:
    if not module_exists("chassis.migrations"):
        raise Fault("there are no migrations: the package tip-chassis is not installed")
    with database(settings) as stack:
        if down:
            downgrade_all(stack)
        else:
            migrate(stack)


def downgrade_all(stack: Stack) -> None:
    migrations = import_module("chassis.migrations")
    for service in reversed(migrations.services()):
        migrations.downgrade(stack.admin_url, service)


@contextmanager
def database(settings: Settings) -> Iterator[Stack]:
    """The given one, the one that runs, or the embedded one started for the occasion."""
    home = Home(settings.home)
    home.create()
    if settings.database_url:
        probes.require_postgres(settings.database_url)
        yield Stack(settings, home, home.secrets(), settings.database_url, settings.redis_url or "")
    elif home.running_pid():
        yield running_stack(settings)
    else:
        with home.locked(), embedded_postgres(settings, home, home.port) as postgres:
            create_database(postgres.url, DATABASE)
            yield Stack(settings, home, home.secrets(), postgres.url_of(DATABASE), settings.redis_url or "")
