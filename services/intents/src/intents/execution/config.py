"""What the executor and the reconciler read from their environment, beside what every process of intents reads."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Self

from chassis.config import BadConfiguration, setting
from credential_vault import Hashicorp, Keyring, Vault
from intents.config import Config
from intents.execution.model.read_schedule import ReadSchedule
from intents.execution.model.settlement import QueryPolicy
from tip_brokers import BrokerSettings, installed


@dataclass(frozen=True)
class ExecutionConfig(Config):
    broker_connect_seconds: float = setting(
        "BROKER_CONNECT_SECONDS", "how long a broker may take to connect", default=1.0
    )
    broker_read_seconds: float = setting("BROKER_READ_SECONDS", "how long a broker may take to answer", default=3.0)
    executor_threads: int = setting(
        "EXECUTOR_THREADS", "calls at the same time to each broker, in one executor", default=32
    )
    executor_account_calls: int = setting(
        "EXECUTOR_ACCOUNT_CALLS", "of these, at most so many for one account", default=8
    )
    executor_lease_seconds: float = setting(
        "EXECUTOR_LEASE_SECONDS", "how long an executor has an intent to itself; above three calls", default=15.0
    )
    query_after_seconds: float = setting(
        "QUERY_AFTER_SECONDS", "when the broker is first queried about an unknown outcome", default=5.0
    )
    query_every_seconds: float = setting("QUERY_EVERY_SECONDS", "how often from then on", default=2.0)
    send_price_wait_seconds: float = setting(
        "SEND_PRICE_WAIT_SECONDS", "how long a command waits to be sent for a price that a limit needs", default=30.0
    )
    reconcile_seconds: float = setting(
        "RECONCILE_SECONDS",
        "how often an account with open orders is compared with its broker, whatever BROKER_READS_PER_SECOND is",
        default=5.0,
    )
    holding_read_seconds: float = setting(
        "HOLDING_READ_SECONDS", "how often an account that holds something is read at its broker", default=30.0
    )
    idle_read_seconds: float = setting(
        "IDLE_READ_SECONDS", "how often any other enabled account is read at its broker", default=3600.0
    )
    reads_per_second: float = setting(
        "BROKER_READS_PER_SECOND",
        "scheduled and requested reads that all reconcilers begin at one broker in a second; see RECONCILE_SECONDS",
        default=50.0,
    )
    streams: int = setting("BROKER_STREAMS", "accounts whose updates one reconciler receives at most", default=200)
    key_encryption_key: str = setting(
        "VAULT_KEY_ENCRYPTION_KEY", "as in accounts: opens broker secrets", default="", secret=True
    )
    key_encryption_key_file: str = setting("VAULT_KEY_ENCRYPTION_KEY_FILE", "a file with that key", default="")
    earlier_key_encryption_keys: tuple[str, ...] = setting(
        "EARLIER_VAULT_KEY_ENCRYPTION_KEYS", "as in accounts", default=(), secret=True
    )
    paper_account_secret: str = setting(
        "PAPER_ACCOUNT_SECRET",
        "makes the key pairs of paper accounts without a credential; derived from the key above when empty",
        default="",
        secret=True,
    )
    vault: str = setting("VAULT", "as in accounts: local or hashicorp", default="local")
    vault_address: str = setting("VAULT_ADDR", "as in accounts", default="")
    vault_token: str = setting("VAULT_TOKEN", "as in accounts", default="", secret=True)
    vault_token_file: str = setting("VAULT_TOKEN_FILE", "as in accounts", default="")
    vault_mount: str = setting("VAULT_MOUNT", "as in accounts", default="secret")
    vault_prefix: str = setting("VAULT_PREFIX", "as in accounts", default="tip/credentials")
    broker_values: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the environment says of the settings that the installed brokers have of their own."""

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        source = os.environ if environment is None else environment
        variables = {setting.variable for broker in installed().values() for setting in broker.settings}
        values = {variable: source[variable] for variable in variables if variable in source}
        return replace(super().from_env(environment), broker_values=values)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.executor_threads < 1:
            raise BadConfiguration("EXECUTOR_THREADS: must be at least 1")
        if self.executor_account_calls < 1:
            raise BadConfiguration("EXECUTOR_ACCOUNT_CALLS: must be at least 1")
        if min(self.holding_read_seconds, self.idle_read_seconds, self.reads_per_second) <= 0:
            raise BadConfiguration("HOLDING_READ_SECONDS, IDLE_READ_SECONDS, BROKER_READS_PER_SECOND: must be above 0")
        if self.send_price_wait_seconds < 0:
            raise BadConfiguration("SEND_PRICE_WAIT_SECONDS: must not be below 0")
        calls = 3 * (self.broker_connect_seconds + self.broker_read_seconds)
        if self.executor_lease_seconds <= calls:
            raise BadConfiguration(f"EXECUTOR_LEASE_SECONDS: must be more than {calls:g}, the time of three calls")

    @property
    def price_wait(self) -> timedelta:
        return timedelta(seconds=self.send_price_wait_seconds)

    @property
    def query_policy(self) -> QueryPolicy:
        return QueryPolicy(self.query_after_seconds, self.query_every_seconds)

    @property
    def read_schedule(self) -> ReadSchedule:
        return ReadSchedule(self.holding_read_seconds, self.idle_read_seconds, self.reads_per_second)

    @property
    def broker_settings(self) -> BrokerSettings:
        return BrokerSettings(self.broker_values, self.broker_connect_seconds, self.broker_read_seconds)

    def keyring(self) -> Keyring:
        key = self.key_encryption_key
        try:
            if self.key_encryption_key_file:
                key = Path(self.key_encryption_key_file).read_text()
            return Keyring.from_text(key, self.earlier_key_encryption_keys)
        except (OSError, ValueError):
            raise BadConfiguration("VAULT_KEY_ENCRYPTION_KEY: must be 32 random bytes in base64") from None

    def remote_vault(self) -> Vault | None:
        if self.vault != "hashicorp":
            return None
        return Hashicorp(self.vault_address, self._token, mount=self.vault_mount, prefix=self.vault_prefix)

    def _token(self) -> str:
        return Path(self.vault_token_file).read_text().strip() if self.vault_token_file else self.vault_token
