"""What accounts reads from its environment."""

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from chassis.config import BadConfiguration, ServiceConfig, setting
from chassis.fields import Identifier

VAULTS = ("local", "hashicorp")


@dataclass(frozen=True)
class Config(ServiceConfig):
    key_encryption_key: str = setting(
        "VAULT_KEY_ENCRYPTION_KEY", "32 random bytes in base64; seals broker secrets at rest", default="", secret=True
    )
    key_encryption_key_file: str = setting(
        "VAULT_KEY_ENCRYPTION_KEY_FILE", "a file with that key; one of the two is required", default=""
    )
    earlier_key_encryption_keys: tuple[str, ...] = setting(
        "EARLIER_VAULT_KEY_ENCRYPTION_KEYS",
        "keys still accepted while `tip vault rewrap` runs",
        default=(),
        secret=True,
    )
    fingerprint_key: str = setting(
        "FINGERPRINT_KEY",
        "32 random bytes in base64; keeps fingerprints the same when the key above changes; derived from it when empty",
        default="",
        secret=True,
    )
    vault: str = setting("VAULT", "where broker secrets are kept: local or hashicorp", default="local")
    vault_address: str = setting("VAULT_ADDR", "HashiCorp Vault's address", default="")
    vault_token: str = setting("VAULT_TOKEN", "a token for it", default="", secret=True)
    vault_token_file: str = setting("VAULT_TOKEN_FILE", "a file with the token, read before every use", default="")
    vault_mount: str = setting("VAULT_MOUNT", "where its KV version 2 engine is mounted", default="secret")
    vault_prefix: str = setting("VAULT_PREFIX", "path below which secrets are kept", default="tip/credentials")
    internal_organizations: tuple[str, ...] = setting(
        "INTERNAL_ORGANIZATIONS",
        "ids of the organizations whose admins see the outbox and drive failed rows again",
        default=(),
    )
    live_rehearsal: bool = setting("LIVE_REHEARSAL", "whether a live account may be at the paper broker", default=True)
    most_accounts: int = setting("ACCOUNTS_PER_ORGANIZATION", "accounts an organization may have", default=1_000)
    most_credentials: int = setting("CREDENTIALS_PER_ACCOUNT", "credentials an account may have", default=50)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most_accounts < 1 or self.most_credentials < 1:
            raise BadConfiguration("ACCOUNTS_PER_ORGANIZATION, CREDENTIALS_PER_ACCOUNT: must be at least 1")
        if bool(self.key_encryption_key) == bool(self.key_encryption_key_file):
            raise BadConfiguration(
                "VAULT_KEY_ENCRYPTION_KEY: set it or VAULT_KEY_ENCRYPTION_KEY_FILE, and only one of them"
            )
        if self.vault not in VAULTS:
            raise BadConfiguration(f"VAULT: must be one of {', '.join(VAULTS)}")
        if self.vault == "hashicorp" and not (self.vault_address and (self.vault_token or self.vault_token_file)):
            raise BadConfiguration("VAULT_ADDR: needed with VAULT_TOKEN or VAULT_TOKEN_FILE when VAULT=hashicorp")
        if not all(Identifier.PATTERN.fullmatch(organization) for organization in self.internal_organizations):
            raise BadConfiguration("INTERNAL_ORGANIZATIONS: must be UUIDs separated by commas")

    @property
    def internal_organization_ids(self) -> frozenset[UUID]:
        return frozenset(UUID(organization) for organization in self.internal_organizations)

    def read_key_encryption_key(self) -> str:
        if not self.key_encryption_key_file:
            return self.key_encryption_key
        try:
            return Path(self.key_encryption_key_file).read_text().strip()
        except OSError as error:
            raise BadConfiguration(f"VAULT_KEY_ENCRYPTION_KEY_FILE: {error.strerror}") from None

    def read_vault_token(self) -> str:
        return Path(self.vault_token_file).read_text().strip() if self.vault_token_file else self.vault_token
