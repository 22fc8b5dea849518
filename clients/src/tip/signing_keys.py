"""`tip signing-keys rotate`"""

from importlib import import_module

import click

from tip_local.schema import database
from tip_local.settings import Settings


@click.group()
def command() -> None:
    """The keys that sign the platform's tokens."""


@command.command()
def rotate() -> None:
    """Sign with a new key from now on; tokens already issued stay valid."""
    identity, usecases = import_module("identity.app"), import_module("identity.usecases")
    with database(Settings.from_env()) as stack:
        config = import_module("identity.config").Config.from_env(stack.service_env("identity"))
        deps = identity.dependencies(config)
        kid = usecases.rotate_signing_keys(deps)
        deps.engine.dispose()
    click.echo(f"tip: new signing key {kid}")
