"""The folder of a backup: a dump of the database, the platform's secrets, and a manifest that says what they are."""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from chassis import migrations
from tip_local.datastore import write_private
from tip_local.errors import Fault
from tip_local.home import read_json

FORMAT = 1
DUMP, SECRETS, MANIFEST = "tip.dump", "secrets.json", "manifest.json"


class Manifest(NamedTuple):
    format: int
    created_at: str
    version: str
    """Of the platform that made it."""
    postgres: str
    log_epoch: str
    """Under which sequences of the dump count; a restore begins another one."""
    migrations: dict[str, str]
    """How far each service was migrated."""
    sha256: dict[str, str]


def write_json(folder: Path, manifest: Manifest) -> None:
    write_private(folder / MANIFEST, json.dumps(manifest._asdict(), indent=2))


def read_manifest(folder: Path) -> Manifest:
    found = read_json(folder / MANIFEST)
    if not found:
        raise Fault(f"{folder} is no backup: it has no {MANIFEST}")
    if found.get("format") != FORMAT:
        raise Fault(f"{folder} has format {found.get('format')}, not {FORMAT}: restore it with a newer version of tip")
    try:
        return Manifest(**{name: found[name] for name in Manifest._fields})
    except KeyError as missing:
        raise Fault(f"{folder / MANIFEST} is damaged: it lacks {missing}") from None


def require_whole(folder: Path, manifest: Manifest, secrets: Path) -> None:
    """The files are those that were saved."""
    for file in (folder / DUMP, secrets):
        if not file.is_file():
            raise Fault(f"{file} is missing: --secrets names where the secrets of this backup are kept")
        expected = manifest.sha256.get(DUMP if file.name == DUMP else SECRETS)
        if sha256_of(file) != expected:
            raise Fault(f"{file} is not the one that was saved: its checksum differs. Take another copy of the backup")


def require_known(manifest: Manifest) -> None:
    """Every migration of the dump is known here: newer data cannot be used by an older platform."""
    for service, revision in manifest.migrations.items():
        folder = migrations.scripts(service) if service in migrations.services() else None
        if folder is None or not any(folder.glob(f"{revision}_*.py")):
            raise Fault(
                f"the backup is of version {manifest.version}, with migration {revision} of {service}, which is not "
                "known here: install that version or a newer one"
            )


def sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
