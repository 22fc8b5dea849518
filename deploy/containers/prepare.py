"""One-shot before everything else: passwords, keys and the development certificate, made once and kept in volumes.

Every service's volume gets its own secrets and nobody else's, one file per environment variable.
"""

import secrets
from pathlib import Path

import certificate
from container_stack import FOLDER, container_stack

from tip_local.home import ROLES
from tip_local.stack import KEY, Stack

VAULT_KEY, EARLIER_VAULT_KEY = "vault_key_encryption_key", "earlier_vault_key_encryption_key"
"""Names in secrets.json that are there once rotate.py was used."""


def kept_password(file: Path) -> str:
    """Readable by all, because the user that Postgres runs as differs between images; only it has the volume."""
    if not file.exists():
        write(file, secrets.token_urlsafe(24), 0o444)
    return file.read_text()


def environments(stack: Stack) -> dict[Path, dict[str, str]]:
    """What is secret or differs between installations; the rest is in docker-compose.yml."""
    common = {"REDIS_URL": stack.redis_url, "CURSOR_KEY": stack.secrets["cursor_key"]}
    vault = vault_keys(stack.secrets)
    services = {role: {**common, "DATABASE_URL": stack.database_url(role)} for role in ROLES}
    # Of intents' processes only executor and reconciler open the brokers' secrets; the others never hold the key.
    keyed = {
        "identity": services["identity"] | stack.key_encryption_keys,
        "identity_web": services["identity_web"] | stack.key_encryption_keys,
        "accounts": services["accounts"] | vault,
        "accounts_web": services["accounts_web"] | vault,
        "execution": services["intents"] | vault,
    }
    signer = {"DATABASE_URL": stack.database_url("intents_signer"), "LOG_SIGNING_KEY": stack.secrets["log_signing_key"]}
    administrator = {"DATABASE_URL": stack.admin_url, "REDIS_URL": stack.redis_url} | vault
    return {
        **{FOLDER / name: environment for name, environment in (services | keyed | {"intents_signer": signer}).items()},
        stack.home.path / "environment": administrator,
    }


def vault_keys(secrets: dict[str, str]) -> dict[str, str]:
    """What brokers' secrets are sealed with: identity's key until one is rotated, beside the one before while it is."""
    current = secrets.get(VAULT_KEY) or secrets[KEY]
    earlier = secrets.get(EARLIER_VAULT_KEY)
    return {"KEY_ENCRYPTION_KEY": current} | ({"EARLIER_KEY_ENCRYPTION_KEYS": earlier} if earlier else {})


def write(file: Path, text: str, mode: int = 0o400) -> None:
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    file.touch(mode=mode)
    file.chmod(0o600)
    file.write_text(text)
    file.chmod(mode)


def main() -> None:
    stack = container_stack(kept_password(FOLDER / "postgres" / "password"))
    for folder, environment in environments(stack).items():
        for name, value in environment.items():
            write(folder / name, value)
        for left in set(folder.iterdir()) - {folder / name for name in environment}:
            left.unlink()
    certificate.ensure(FOLDER / "certificate")
    write(stack.home.path / "ca.crt", (FOLDER / "certificate" / "ca.crt").read_text(), 0o444)


if __name__ == "__main__":
    main()
