"""Replaces a secret and hands it out to those who use it; docs/operations.md says what to restart then, in which order.

    docker-compose run --rm prepare python /opt/tip/containers/rotate.py WHAT

It changes files in volumes and nothing else: a running process keeps what it has read until it is restarted.
"""

import json
import secrets
import sys

import certificate
import prepare
from container_stack import FOLDER

from tip_local.datastore import write_private
from tip_local.home import ROLES, Home, random_key
from tip_local.settings import Settings
from tip_local.stack import EARLIER_KEY, KEY

USAGE = f"""WHAT is one of
  database-password ROLE      ROLE is one of {", ".join(ROLES)}
  signing-key-key             a new key-encryption key for the signing keys; the one before still opens them
  signing-key-key-end         the one before no longer opens anything: after `tip signing-keys reseal`
  vault-key                   a new key-encryption key for brokers' secrets; the one before still opens them
  vault-key-end               the one before no longer opens anything: after `tip vault rewrap`
  cursor-key                  list cursors that callers hold become 400
  certificate                 a new development certificate of a new authority"""


def database_password(kept: dict[str, str], service: str) -> dict[str, str]:
    return kept | {service: secrets.token_urlsafe(24)}


def signing_key_key(kept: dict[str, str]) -> dict[str, str]:
    if EARLIER_KEY in kept:
        sys.exit("the rotation before has not ended: `tip signing-keys reseal`, then signing-key-key-end")
    # Until it is rotated itself, brokers' secrets are under this key too, and there it stays.
    vault = {prepare.VAULT_KEY: prepare.vault_keys(kept)["KEY_ENCRYPTION_KEY"]}
    return kept | vault | {KEY: random_key(), EARLIER_KEY: kept[KEY]}


def signing_key_key_end(kept: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in kept.items() if name != EARLIER_KEY}


def vault_key(kept: dict[str, str]) -> dict[str, str]:
    if prepare.EARLIER_VAULT_KEY in kept:
        sys.exit("the rotation before has not ended: `tip vault rewrap`, then vault-key-end")
    before = prepare.vault_keys(kept)["KEY_ENCRYPTION_KEY"]
    return kept | {prepare.VAULT_KEY: random_key(), prepare.EARLIER_VAULT_KEY: before}


def vault_key_end(kept: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in kept.items() if name != prepare.EARLIER_VAULT_KEY}


KEYS = {
    "signing-key-key": signing_key_key,
    "signing-key-key-end": signing_key_key_end,
    "vault-key": vault_key,
    "vault-key-end": vault_key_end,
}


def rotated(kept: dict[str, str], what: list[str]) -> dict[str, str]:
    match what:
        case ["database-password", service] if service in ROLES:
            return database_password(kept, service)
        case [key] if key in KEYS:
            return KEYS[key](kept)
        case ["cursor-key"]:
            return kept | {"cursor_key": random_key()}
        case ["certificate"]:
            certificate.ensure(FOLDER / "certificate", anew=True)
            return kept
    sys.exit(USAGE)


if __name__ == "__main__":
    home = Home(Settings.from_env().home)
    write_private(home.path / "secrets.json", json.dumps(rotated(home.secrets(), sys.argv[1:]), indent=2))
    prepare.main()
