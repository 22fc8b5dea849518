"""`tip restore`"""

import shutil
from pathlib import Path

import click
from sqlalchemy import NullPool, create_engine, text

from chassis import db, migrations
from intents import store
from tip.backup_folder import DUMP, SECRETS, Manifest, read_manifest, require_known, require_whole
from tip.output import Output
from tip.postgres_tools import restore_dump
from tip.session import json_option, shown_as_json
from tip_local.datastore import write_private
from tip_local.errors import Fault
from tip_local.home import Home
from tip_local.schema import database
from tip_local.settings import Settings
from tip_local.stack import Stack, embedded_postgres
from tip_local.up import migrate

THERE = text("SELECT nspname FROM pg_namespace WHERE nspname = ANY(:services) ORDER BY nspname LIMIT 1")
VERSION = text("SHOW server_version_num")
CURRENT_EPOCH = text("SELECT intents_api.current_log_epoch()")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--secrets", type=click.Path(path_type=Path), help="The backup's secrets.json, if it was kept apart.")
@json_option
def command(folder: Path, secrets: Path | None) -> None:
    """Bring a backup back, into an empty installation on this machine.

    It begins a new log epoch: clients read their accounts anew and subscribe without resuming, and what happened at
    brokers meanwhile is found by comparing when the platform starts. If it fails, the installation is empty as before.
    """
    made = read_manifest(folder)
    epoch = restore(Settings.from_env(), folder, made, secrets or folder / SECRETS)
    shown = {"folder": str(folder), "created_at": made.created_at, "log_epoch": epoch}
    line = f"the state of {made.created_at} is restored, under log epoch {epoch}; start it: tip start"
    Output(as_json=shown_as_json(click.get_current_context())).result(shown, line)


def restore(settings: Settings, folder: Path, manifest: Manifest, secrets: Path) -> str:
    home = Home(settings.home)
    require_whole(folder, manifest, secrets)
    require_known(manifest)
    require_empty(settings, home)
    home.create()
    try:
        write_private(home.path / SECRETS, secrets.read_text())
        with database(settings) as stack:
            return _restored(stack, folder / DUMP, manifest)
    except BaseException:
        _empty(settings, home)
        raise


def require_empty(settings: Settings, home: Home) -> None:
    kept = [home.path / SECRETS, home.local_file]
    if not settings.database_url:
        kept.append(embedded_postgres(settings, home, home.remembered_port).data)
    if home.running_pid() or any(path.exists() for path in kept):
        raise Fault(
            f"{home.path} is not empty, and a restore writes over nothing: choose another place with TIP_HOME, or stop "
            "what runs there and move it away"
        )


def _empty(settings: Settings, home: Home) -> None:
    (home.path / SECRETS).unlink(missing_ok=True)
    if not settings.database_url:
        shutil.rmtree(embedded_postgres(settings, home, home.remembered_port).directory, ignore_errors=True)


def _restored(stack: Stack, dump: Path, manifest: Manifest) -> str:
    engine = create_engine(db.with_driver(stack.admin_url), poolclass=NullPool)
    with engine.begin() as tx:
        if found := tx.execute(THERE, {"services": migrations.services()}).scalar():
            raise Fault(f"the database has a schema {found} already: restore into an empty one")
        _require_version(int(tx.execute(VERSION).scalar_one()) // 10_000, manifest)
    migrations.make_roles(stack.admin_url, stack.role_passwords)
    restore_dump(stack, dump)
    migrate(stack)
    with engine.begin() as tx:
        epoch = tx.execute(CURRENT_EPOCH).scalar_one()  # another cluster is noticed, and begins one
        return str(epoch if str(epoch) != manifest.log_epoch else store.begin_epoch(tx))


def _require_version(here: int, manifest: Manifest) -> None:
    there = int(manifest.postgres.split(".")[0].split()[0])
    if there > here:
        raise Fault(f"the backup is of Postgres {there}, and this is {here}: restore it into {there} or newer")
