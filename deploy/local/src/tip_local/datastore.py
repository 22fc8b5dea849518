"""What the two embedded servers have in common: an own directory, a port, a password, one process."""

import os
import secrets
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import IO, ClassVar, Self

from tip_local.errors import Fault
from tip_local.processes import free_port, wait_until, with_parent_death_signal

START_SECONDS = 30.0
STOP_SECONDS = 20.0
SYSTEM_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
"""Little and known: PG* or LC_* variables of the caller must not change how an embedded server runs."""


class Datastore:
    """One server process in one directory. It may be killed at any moment: `start` recovers by itself."""

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]
    identity: str = "same"

    def __init__(self, directory: Path, port: int | None = None, *, fast: bool = False) -> None:
        """`fast` trades durability for speed: throw-away servers of tests only."""
        self.directory = directory.absolute()
        self.port = port or free_port()
        self.fast = fast
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        raise NotImplementedError

    @property
    def password(self) -> str:
        return kept_secret(self.directory / "password")

    @property
    def log_file(self) -> Path:
        return self.directory / "server.log"

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process and self.process.poll() is None else None

    def prepare(self) -> None:
        """Make the directory startable: create what is missing, end or outlast what an earlier run left behind."""
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Beyond SYSTEM_ENVIRONMENT; valid after `prepare`."""
        return {}

    def is_ready(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        """Returns when the server answers. Call it from the main thread (see `processes.bound`)."""
        if self.pid:
            return
        self.prepare()
        with self.log_file.open("wb") as log:
            self.process = self._spawn(log)
        if not wait_until(lambda: self._ended() or self.is_ready(), START_SECONDS) or self._ended():
            self.kill()
            raise Fault(f"{self.name} did not start: {reason(self.log_file.read_text(errors='replace'))}")

    def stop(self) -> None:
        if self.pid and self.process:
            self.process.send_signal(self.stop_signal)
            if not wait_until(self._ended, STOP_SECONDS):
                self.kill()
        self.process = None

    def kill(self) -> None:
        """As a power cut would: no farewell, no flush."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        command = with_parent_death_signal(self.command(), self.stop_signal, self.identity)
        environment = {**SYSTEM_ENVIRONMENT, **self.environment()}
        return subprocess.Popen(
            command,
            env=environment,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def _ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def private_directory(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)


def kept_secret(file: Path) -> str:
    """The random secret in the file, made on first use; never a half-written one."""
    if not file.exists():
        write_private(file, secrets.token_urlsafe(24))
    return file.read_text().strip()


def write_private(file: Path, text: str, *, durable: bool = True) -> None:
    """Replace the file in one step, readable by its owner only from the first moment."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600)
    with draft.open("w") as opened:
        opened.write(text)
        if durable:
            opened.flush()
            os.fsync(opened.fileno())  # a power cut must not leave an empty file under the final name
    draft.replace(file)


def reason(output: str) -> str:
    """The one line of a failed server's output that says why."""
    lines = output.strip().splitlines() or ["no output"]
    telling = [line for line in lines if "FATAL" in line or "error:" in line]
    return (telling or lines)[-1].strip()
