"""Replaces a secret and hands it out to those who use it; docs/operations.md says what to restart then, in which order.

    docker-compose run --rm prepare python /opt/tip/containers/rotate.py WHAT

It changes files in volumes and nothing else: a running process keeps what it has read until it is restarted.
"""

import json
import secrets
import sys
from collections.abc import Callable

import certificate
import prepare
from container_stack import FOLDER

from chassis.services import ROLES
from tip_local.datastore import write_private
from tip_local.home import BROKER_OPERATOR, SIGNING_KEY, VAULT_KEY, Home, random_key
from tip_local.settings import Settings

USAGE = f"""WHAT is one of
  database-password ROLE      ROLE is one of {", ".join(ROLES)}
  signing-key-key             a new key-encryption key for the signing keys; the one before still opens them
  signing-key-key-end         the one before no longer opens anything: after `tip signing-keys reseal`
  vault-key                   a new key-encryption key for brokers' secrets; the one before still opens them
  vault-key-end               the one before no longer opens anything: after `tip vault rewrap`
  redis-password              Redis takes the new one, and no other, when it is restarted
  paper-broker-token          what opens /sim of the paper broker
  log-signing-key             signs the heads of logs from now on; heads signed before stay valid
  cursor-key                  list cursors that callers hold become 400
  certificate                 a new development certificate of a new authority"""


def database_password(kept: dict[str, str], service: str) -> dict[str, str]:
    return kept | {service: secrets.token_urlsafe(24)}


def begun(kept: dict[str, str], what: str) -> dict[str, str]:
    """A new key-encryption key beside the one before, which still opens what it sealed."""
    key, resealing = KEYS[what]
    if f"earlier_{key}" in kept:
        sys.exit(f"the rotation before has not ended: `{resealing}`, then {what}-end")
    return kept | {key: random_key(), f"earlier_{key}": kept[key]}


def ended(kept: dict[str, str], what: str) -> dict[str, str]:
    return {name: value for name, value in kept.items() if name != f"earlier_{KEYS[what][0]}"}


KEYS = {
    "signing-key-key": (SIGNING_KEY.lower(), "tip signing-keys reseal"),
    "vault-key": (VAULT_KEY.lower(), "tip vault rewrap"),
}


MADE: dict[str, Callable[[], dict[str, str]]] = {
    "cursor-key": lambda: {"cursor_key": random_key()},
    "log-signing-key": lambda: {"log_signing_key": random_key()},
    "paper-broker-token": lambda: {BROKER_OPERATOR: secrets.token_urlsafe(24)},
}


def rotated(kept: dict[str, str], what: list[str]) -> dict[str, str]:
    match what:
        case ["database-password", service] if service in ROLES:
            return database_password(kept, service)
        case [key] if key in KEYS:
            return begun(kept, key)
        case [end] if (key := end.removesuffix("-end")) in KEYS:
            return ended(kept, key)
        case [made] if made in MADE:
            return kept | MADE[made]()
        case ["redis-password"]:
            (FOLDER / "redis" / "password").unlink(missing_ok=True)  # prepare makes another
        case ["certificate"]:
            certificate.ensure(FOLDER / "certificate", anew=True)
        case _:
            sys.exit(USAGE)
    return kept


if __name__ == "__main__":
    home = Home(Settings.from_env().home)
    write_private(home.path / "secrets.json", json.dumps(rotated(home.secrets(), sys.argv[1:]), indent=2))
    prepare.main()
