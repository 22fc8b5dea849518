"""`tip vault`"""

import os
from importlib import import_module
from typing import Any

import click
from sqlalchemy.exc import SQLAlchemyError

from tip_local.errors import Fault
from tip_local.home import VAULT_KEY
from tip_local.schema import database
from tip_local.settings import Settings

REASONS = {
    "UnknownKey": "is sealed under a key not given here: add it to EARLIER_VAULT_KEY_ENCRYPTION_KEYS",
    "BrokenSeal": "does not open under the key it names: it was altered or moved",
}
KEYS = (VAULT_KEY, f"{VAULT_KEY}_FILE")


@click.group()
def command() -> None:
    """Look after the keys that broker secrets are sealed with."""


@command.command()
def rewrap() -> None:
    """Put every sealed secret under the current key-encryption key.

    VAULT_KEY_ENCRYPTION_KEY (or VAULT_KEY_ENCRYPTION_KEY_FILE) names the current key, EARLIER_VAULT_KEY_ENCRYPTION_KEYS
    the keys that secrets may still be sealed under; unset, they are the platform's own. Secrets are not decrypted;
    running it again changes nothing. One that does not open is named and left as it is; the others are done all the
    same.
    """
    with database(Settings.from_env()) as stack:
        unused = {"REDIS_URL": "redis://unused", "CURSOR_KEY": "unused"}  # a service's configuration requires them
        environment = {**unused, **os.environ, "DATABASE_URL": stack.admin_url}
        if not any(os.environ.get(key) for key in KEYS):
            environment |= stack.sealing_keys(VAULT_KEY)
        done = rewrapped(environment)
    click.echo(f"tip: {done.count} sealed secrets re-wrapped")
    for left in done.left:
        click.echo(f"tip: credential {left.credential_id} version {left.version} {REASONS[left.reason]}", err=True)
    if done.left:
        raise Fault(f"{len(done.left)} sealed secrets are still under another key: it cannot be taken away yet")


def rewrapped(environment: dict[str, str]) -> Any:
    config, app, usecases = (import_module(name) for name in ("accounts.config", "accounts.app", "accounts.usecases"))
    bad_configuration: Any = import_module("chassis.config").BadConfiguration
    try:
        deps = app.dependencies(config.Config.from_env(environment))
        return usecases.rewrap(deps)
    except bad_configuration as problem:
        raise Fault(str(problem)) from problem
    except SQLAlchemyError as problem:
        raise Fault(f"the database did not let it finish ({type(problem).__name__}): run it again") from problem
