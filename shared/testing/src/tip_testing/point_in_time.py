"""An embedded Postgres that can be put back to an earlier point in time, for tests of what a restore means."""

import signal
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg2

from tip_local import rootless
from tip_local.datastore import SYSTEM_ENVIRONMENT, private_directory
from tip_local.errors import Fault
from tip_local.postgres import EmbeddedPostgres
from tip_local.processes import wait_until, with_parent_death_signal

RECOVERY_SECONDS = 60.0
ARCHIVING = {
    "wal_level": "replica",
    "full_page_writes": "on",
    "max_wal_senders": "2",
    "archive_mode": "on",
}


class ArchivingPostgres(EmbeddedPostgres):
    """A fast cluster with continuous archiving: `take_base_backup`, then `mark` points, then `restore` one of them."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, fast=True)

    @property
    def archive(self) -> Path:
        return self.directory / "archive"

    @property
    def backup(self) -> Path:
        return self.directory / "backup"

    def prepare(self) -> None:
        super().prepare()
        private_directory(self.archive)
        rootless.hand_over(self.archive, self.identity)

    def command(self) -> list[str]:
        chosen = {**ARCHIVING, "archive_command": f'test ! -f "{self.archive}/%f" && cp "%p" "{self.archive}/%f"'}
        return [*super().command(), *(word for name, value in chosen.items() for word in ("-c", f"{name}={value}"))]

    def take_base_backup(self) -> None:
        options = ["--checkpoint=fast", "--no-sync", f"--pgdata={self.backup}", f"--dbname={self.url}"]
        command = with_parent_death_signal([str(self.binary("pg_basebackup")), *options], signal.SIGKILL, self.identity)
        subprocess.run(command, env=SYSTEM_ENVIRONMENT, cwd=self.directory, check=True, capture_output=True)

    def mark(self, point: str) -> None:
        """Name the present moment, so that `restore` can go back to it."""
        self._query("SELECT pg_create_restore_point(%s)", point)

    def restore(self, point: str, *, pause: bool = False) -> None:
        """Replace the cluster by the base backup, recovered up to the point; at the same address.

        It is promoted there, or with `pause` waits for `promote` and can only be read meanwhile.
        """
        self.stop()  # archives the rest of the write-ahead log
        self.data.rename(self.directory / f"lost-{point}")
        self.backup.rename(self.data)
        settings = {
            "restore_command": f'cp "{self.archive}/%f" "%p"',
            "recovery_target_name": point,
            "recovery_target_action": "pause" if pause else "promote",
        }
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        (self.data / "recovery.signal").touch()
        rootless.hand_over(self.data / "recovery.signal", self.identity)
        self.start()  # answers while it is still recovering
        reached = self._is_paused if pause else self._is_promoted
        if not wait_until(reached, RECOVERY_SECONDS):
            raise Fault(f"postgres did not recover to {point}")

    def promote(self) -> None:
        self._query("SELECT pg_promote()")

    def put_files_back(self, copy: Path) -> None:
        """Replace the data directory by a copy that was made of it while the server was stopped."""
        self.stop()
        self.data.rename(self.directory / "lost-files")
        copy.rename(self.data)
        self.start()

    def _is_paused(self) -> bool:
        return self._query("SELECT pg_get_wal_replay_pause_state()") == [("paused",)]

    def _is_promoted(self) -> bool:
        return self._query("SELECT pg_is_in_recovery()") == [(False,)]

    def _query(self, statement: str, *values: str) -> list[tuple[object, ...]]:
        with closing(psycopg2.connect(self.url)) as connection:
            cursor = connection.cursor()
            cursor.execute(statement, values)
            return cursor.fetchall()
