"""A whole platform as `make start` starts it, in a home of its own that is removed afterwards."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
from attack_http import address_of

from tip_local.settings import Settings
from tip_local.stack import Stack, running_stack
from tip_testing.ports import reserved_port

PORTS = ("TIP_PORT", "TIP_STREAM_PORT", "TIP_EVENTS_PORT", "TIP_PAPER_BROKER_PORT")
# Quotas would answer instead of what is attacked, and so would a platform that is behind, with a 503 that would have to
# be excused. Fairness and streams are attacked with the settings as shipped.
UNLIMITED = dict.fromkeys(
    (
        "RATE_LIMIT_PER_MINUTE",
        "VALIDATE_RATE_LIMIT_PER_MINUTE",
        "TOKEN_RATE_LIMIT_PER_MINUTE",
        "API_KEYS_PER_ORGANIZATION",
        "MEMBERS_PER_ORGANIZATION",
        "INVITATIONS_PER_ORGANIZATION",
        "INVITATION_RATE_LIMIT_PER_MINUTE",
        "SERVICE_ACCOUNTS_LIMIT",
        "ACCOUNTS_PER_ORGANIZATION",
        "CREDENTIALS_PER_ACCOUNT",
        "BACKLOG_MAX_AGE_SECONDS",
    ),
    "1000000000",
)
# Fuzzed orders stay open on hundreds of accounts. Comparing each with its broker every five seconds would be most of
# the platform's work.
SELDOM = {"RECONCILE_SECONDS": "60"}


@dataclass(frozen=True)
class Platform:
    home: Path
    environment: dict[str, str]
    local: dict[str, Any]
    """What `local.json` says: addresses, and the credentials of the demo organizations."""
    stack: Stack

    @property
    def web(self) -> tuple[str, int]:
        return address_of(self.local["base_url"])

    @property
    def events(self) -> tuple[str, int]:
        return address_of(self.local["events_url"])

    @property
    def broker(self) -> tuple[str, int]:
        return address_of(self.local["paper_broker_url"])

    @property
    def stream_target(self) -> str:
        return str(self.local["stream_target"])

    @property
    def admin_url(self) -> str:
        return self.stack.admin_url

    def database_connections(self) -> tuple[int, int]:
        """How many the processes hold, and how many the server allows. They are kept: the most there ever were."""
        with closing(psycopg2.connect(self.admin_url)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*), current_setting('max_connections')::int FROM pg_stat_activity "
                           "WHERE usename LIKE 'tip\\_%'")  # fmt: skip
            held, allowed = cursor.fetchone()
        return held, allowed

    def environment_of(self, service: str) -> dict[str, str]:
        """What the service needs to run here in this process, whatever the platform's own processes are given of it."""
        secrets = self.stack.secrets
        keys = {name.upper(): secrets[name] for name in secrets if name.endswith("key_encryption_key")}
        return {**self.stack.service_env(service), **keys, **self._limits}

    @property
    def signing_environment(self) -> dict[str, str]:
        """What identity's own use cases need here, where tenants are made: thousands in a long run."""
        return {**self.stack.signing_env, **self._limits}

    @property
    def _limits(self) -> dict[str, str]:
        return {name: self.environment[name] for name in UNLIMITED if name in self.environment}

    def command(self, *words: str) -> None:
        done = subprocess.run(["tip", *words], env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"tip {' '.join(words)}: {done.stdout}{done.stderr}")


def running_platform(environment: dict[str, str]) -> Platform:
    """The one that runs in the home that these variables name."""
    home = Path(environment["TIP_HOME"])
    local = json.loads((home / "local.json").read_text())
    return Platform(home, environment, local, running_stack(Settings.from_env(environment)))


@contextmanager
def platform(*, keep: bool = False, **settings: str) -> Iterator[Platform]:
    """`settings` are environment variables of every process; `keep` leaves the logs behind."""
    home = Path(tempfile.mkdtemp(prefix="tip-attack-"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ports = {name: str(reserved_port()) for name in PORTS}
    environment = {**os.environ, **ports, **settings, "TIP_HOME": str(home), "PATH": path}
    subprocess.run(["tip", "start"], env=environment, check=True, stdout=subprocess.DEVNULL)
    try:
        yield running_platform(environment)
    finally:
        subprocess.run(["tip", "stop"], env=environment, check=False, stdout=subprocess.DEVNULL)
        if not keep:
            shutil.rmtree(home, ignore_errors=True)
