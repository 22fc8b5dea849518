"""`tip backup`"""

import secrets
import shutil
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click
from sqlalchemy import Connection, NullPool, create_engine, text

from chassis import db, migrations
from intents import store
from tip.backup_folder import DUMP, FORMAT, SECRETS, Manifest, sha256_of, write_json
from tip.output import Output
from tip.postgres_tools import dump
from tip.session import json_option, shown_as_json
from tip_local.datastore import private_directory
from tip_local.errors import Fault
from tip_local.schema import database
from tip_local.settings import Settings
from tip_local.stack import Stack

VERSION = text("SHOW server_version")
MIGRATED = text("SELECT to_regclass(:name)")
REVISION = "SELECT version_num FROM {service}.schema_version"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def command(folder: Path) -> None:
    """Save the platform on this machine: database, secrets and a manifest, in a new folder.

    The platform may run meanwhile: it is one consistent moment. secrets.json opens the broker secrets that are sealed
    in the database: keep it apart from the dump. Redis holds nothing that cannot be lost. What the paper broker holds
    is a broker's own, and not part of it. For containers see docs/operations.md.
    """
    made = back_up(Settings.from_env(), folder.absolute())
    shown = {"folder": str(folder), **made._asdict()}
    line = f"the platform is saved in {folder}, log epoch {made.log_epoch}; keep its secrets.json apart from the dump"
    Output(as_json=shown_as_json(click.get_current_context())).result(shown, line)


def back_up(settings: Settings, folder: Path) -> Manifest:
    """Whole or not at all."""
    if folder.exists():
        raise Fault(f"{folder} is there already: choose another name, a backup is never written over")
    draft = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    try:
        private_directory(draft)
        with database(settings) as stack:
            made = _saved(stack, draft)
        write_json(draft, made)
        draft.rename(folder)
    except OSError as error:
        raise Fault(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return made


def _saved(stack: Stack, folder: Path) -> Manifest:
    engine = create_engine(db.with_driver(stack.admin_url), poolclass=NullPool)
    with engine.begin() as tx:
        revisions = _revisions(tx)
        if not revisions:
            raise Fault("there is nothing to save: the database has no schema yet")
        epoch, postgres = str(store.epochs(tx)[-1].epoch), str(tx.execute(VERSION).scalar_one())
    shutil.copyfile(stack.home.path / SECRETS, folder / SECRETS)
    (folder / SECRETS).chmod(0o600)
    dump(stack, folder / DUMP)
    sums = {name: sha256_of(folder / name) for name in (DUMP, SECRETS)}
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    return Manifest(FORMAT, moment, version("tip-cli"), postgres, epoch, revisions, sums)


def _revisions(tx: Connection) -> dict[str, str]:
    """How far each service is migrated."""
    tables = {name: f"{name}.schema_version" for name in migrations.services()}
    known = [name for name, table in tables.items() if tx.execute(MIGRATED, {"name": table}).scalar()]
    return {name: str(tx.execute(text(REVISION.format(service=name))).scalar_one()) for name in known}
