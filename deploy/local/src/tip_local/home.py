"""The folder everything local is kept in: data, secrets, logs, and who is running."""

import base64
import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chassis.services import ROLES
from tip_local.datastore import write_private
from tip_local.errors import Fault
from tip_local.processes import free_port, port_is_free

SIGNING_KEY, VAULT_KEY = "SIGNING_KEY_ENCRYPTION_KEY", "VAULT_KEY_ENCRYPTION_KEY"
"""The variables of the key that seals token signing keys and of the one that seals brokers' secrets."""
KEYS = (SIGNING_KEY.lower(), VAULT_KEY.lower(), "cursor_key", "log_signing_key")
BROKER_OPERATOR = "paper_broker_operator_token"
PASSWORDS = (*ROLES, BROKER_OPERATOR)
LOCK_SECONDS = 0.5


@dataclass(frozen=True)
class Home:
    path: Path

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def metrics(self) -> Path:
        """Where every process leaves its counters."""
        return self.path / "metrics"

    def forget_metrics(self) -> None:
        """Counters of an earlier run must not be added to this one's."""
        shutil.rmtree(self.metrics, ignore_errors=True)
        self.metrics.mkdir(mode=0o700)

    @property
    def local_file(self) -> Path:
        return self.path / "local.json"

    @property
    def _lock_file(self) -> Path:
        return self.path / "lock"

    @property
    def _state_file(self) -> Path:
        return self.path / "state.json"

    @property
    def _ports_file(self) -> Path:
        return self.path / "ports.json"

    def create(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = self.path.stat().st_uid
        except OSError as error:
            raise Fault(f"cannot use {self.path}: {error.strerror}; TIP_HOME chooses another place") from error
        if owner != os.geteuid():
            raise Fault(f"{self.path} belongs to another user (uid {owner}); TIP_HOME chooses another place")
        self.path.chmod(0o700)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held by the one that runs here; the system releases it when that one ends, however it ends."""
        with self._lock_file.open("a+") as file:
            self._lock_or_refuse(file.fileno())
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def _lock_or_refuse(self, descriptor: int) -> None:
        deadline = time.monotonic() + LOCK_SECONDS  # a `tip status` holds it for an instant
        while not try_lock(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise Fault(f"already running in {self.path} (pid {self._lock_file.read_text()}); `make stop` ends it")
            time.sleep(0.05)

    def running_pid(self) -> int | None:
        """Who runs here now, or None."""
        try:
            with self._lock_file.open() as file:
                if try_lock(file.fileno(), fcntl.LOCK_SH):
                    return None
                return int(file.read() or 0) or None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Fault(f"cannot look into {self.path}: {error.strerror}") from error

    def secrets(self) -> dict[str, str]:
        """A database password per role, the platform's own keys, the token of who runs the paper broker: made once,
        kept, completed for new names."""
        file = self.path / "secrets.json"
        kept: dict[str, str] = read_json(file)
        made = {name: secrets.token_urlsafe(24) for name in PASSWORDS} | {key: random_key() for key in KEYS}
        complete = made | kept
        if complete != kept:
            write_private(file, json.dumps(complete, indent=2))
        return complete

    def port(self, name: str, fixed: int | None) -> int:
        """For a server about to start: the fixed one, else the last one if it is free, else a new one."""
        last = self.remembered_port(name, fixed)
        chosen = last if fixed or (last and port_is_free(last)) else free_port()
        write_private(self._ports_file, json.dumps(read_json(self._ports_file) | {name: chosen}))
        return chosen

    def remembered_port(self, name: str, fixed: int | None) -> int:
        """For whom a server is already running: the port it was started on, 0 if it never was."""
        return fixed or int(read_json(self._ports_file).get(name, 0))

    def state(self) -> dict[str, Any]:
        """The last state written by the platform that runs or was killed; nothing after a power cut."""
        try:
            return read_json(self._state_file)
        except Fault:
            return {}

    def write_state(self, state: dict[str, Any]) -> None:
        # Written between a death and the restart, and only of use while the machine runs: not worth waiting for a disk.
        write_private(self._state_file, json.dumps(state), durable=False)

    def forget_state(self) -> None:
        self._state_file.unlink(missing_ok=True)

    def wait_until_free(self, seconds: float, still: Callable[[], bool] = lambda: True) -> bool:
        deadline = time.monotonic() + seconds
        while self.running_pid() is not None:
            if time.monotonic() > deadline or not still():
                return False
            time.sleep(0.05)
        return True


def try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def random_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def read_json(file: Path) -> dict[str, Any]:
    """Empty if there is no such file; a damaged one is named, because guessing could lose a key."""
    with suppress(FileNotFoundError):
        try:
            found = json.loads(file.read_text())
        except ValueError as error:
            raise Fault(f"{file} is damaged: repair or remove it") from error
        if isinstance(found, dict):
            return found
        raise Fault(f"{file} is damaged: repair or remove it")
    return {}
