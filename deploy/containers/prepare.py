"""One-shot before everything else: passwords, keys and the development certificate, made once and kept in volumes.

Every volume gets the secrets of one database role and nobody else's, one file per environment variable. Where only some
of a role's processes need a key-encryption key there are two: accounts and custody, intents and execution.
"""

import secrets
from pathlib import Path

import certificate
from container_stack import FOLDER, container_stack

from chassis.services import ROLES
from tip_local.home import BROKER_OPERATOR, SIGNING_KEY, VAULT_KEY
from tip_local.stack import Stack


def kept_password(file: Path) -> str:
    """Readable by all, because the user that a server runs as differs between images; only it has the volume."""
    if not file.exists():
        write(file, secrets.token_urlsafe(24), 0o444)
    return file.read_text()


def environments(stack: Stack) -> dict[Path, dict[str, str]]:
    """What is secret or differs between installations; the rest is in docker-compose.yml."""
    common = {"REDIS_URL": stack.redis_url, "CURSOR_KEY": stack.secrets["cursor_key"]}
    signing, vault = stack.sealing_keys(SIGNING_KEY), stack.sealing_keys(VAULT_KEY)
    services = {role: {**common, "DATABASE_URL": stack.database_url(role)} for role in ROLES}
    keyed = {
        "identity_web": services["identity_web"] | signing,
        "accounts_web": services["accounts_web"] | vault,
        "custody": services["accounts"] | vault,
        "execution": services["intents"] | vault,
        "intents_signer": {
            "DATABASE_URL": stack.database_url("intents_signer"),
            "LOG_SIGNING_KEY": stack.secrets["log_signing_key"],
        },
        "console": common,  # no role: it has no way into the database
        "paper_broker": {"PAPER_BROKER_OPERATOR_TOKEN": stack.secrets[BROKER_OPERATOR]},
    }
    administrator = {"DATABASE_URL": stack.admin_url, "REDIS_URL": stack.redis_url}
    return {
        **{FOLDER / name: environment for name, environment in (services | keyed).items()},
        stack.home.path / "environment": administrator,
    }


def write(file: Path, text: str, mode: int = 0o400) -> None:
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    file.touch(mode=mode)
    file.chmod(0o600)
    file.write_text(text)
    file.chmod(mode)


def main() -> None:
    redis_password = kept_password(FOLDER / "redis" / "password")
    write(FOLDER / "redis" / "redis.conf", f"requirepass {redis_password}\n", 0o444)
    stack = container_stack(kept_password(FOLDER / "postgres" / "password"), redis_password)
    for folder, environment in environments(stack).items():
        for name, value in environment.items():
            write(folder / name, value)
        for left in set(folder.iterdir()) - {folder / name for name in environment}:
            left.unlink()
    certificate.ensure(FOLDER / "certificate")
    authority = (FOLDER / "certificate" / "ca.crt").read_text()
    write(stack.home.path / "ca.crt", authority, 0o444)
    write(FOLDER / "console" / "API_CA", authority)  # it comes in by the ingress, as everybody does


if __name__ == "__main__":
    main()
