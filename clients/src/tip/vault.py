"""`tip vault`"""

import os
from importlib import import_module
from typing import Any

import click

from tip_local.errors import Fault
from tip_local.schema import database
from tip_local.settings import Settings

KEYS = ("KEY_ENCRYPTION_KEY", "KEY_ENCRYPTION_KEY_FILE")


@click.group()
def command() -> None:
    """Look after the keys that broker secrets are sealed with."""


@command.command()
def rewrap() -> None:
    """Put every sealed secret under the current key-encryption key.

    KEY_ENCRYPTION_KEY (or KEY_ENCRYPTION_KEY_FILE) names the current key, EARLIER_KEY_ENCRYPTION_KEYS the keys that
    secrets may still be sealed under. Secrets are not decrypted; running it again changes nothing.
    """
    with database(Settings.from_env()) as stack:
        environment = {**os.environ, "DATABASE_URL": stack.admin_url, "REDIS_URL": stack.redis_url or "redis://unused"}
        if not any(os.environ.get(key) for key in KEYS):
            environment["KEY_ENCRYPTION_KEY"] = stack.secrets["key_encryption_key"]
        click.echo(f"tip: {rewrapped(environment)} sealed secrets re-wrapped")


def rewrapped(environment: dict[str, str]) -> int:
    config, app, usecases, vault = (
        import_module(name) for name in ("accounts.config", "accounts.app", "accounts.usecases", "vault")
    )
    bad_configuration: Any = import_module("chassis.config").BadConfiguration
    try:
        deps = app.dependencies(config.Config.from_env(environment))
        return int(usecases.rewrap(deps))
    except bad_configuration as problem:
        raise Fault(str(problem)) from problem
    except vault.UnknownKey as problem:
        raise Fault("a secret is sealed under a key not given here: add it to EARLIER_KEY_ENCRYPTION_KEYS") from problem
    except vault.BrokenSeal as problem:
        raise Fault("a sealed secret does not open under the key it names: it was altered or moved") from problem
