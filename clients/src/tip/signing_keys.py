"""`tip signing-keys`"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from tip_local.errors import Fault
from tip_local.schema import database
from tip_local.settings import Settings


@click.group()
def command() -> None:
    """The keys that sign the platform's tokens."""


@command.command()
def rotate() -> None:
    """Sign with a new key from now on; tokens already issued stay valid."""
    with identity() as (usecases, deps):
        kid = usecases.rotate_signing_keys(deps)
    click.echo(f"tip: new signing key {kid}")


@command.command()
def reseal() -> None:
    """Put every signing key and second factor under the current key-encryption key, so that an earlier one can go.

    Tokens are not affected, and running it again changes nothing. One that does not open is named and left as it is.
    """
    with identity() as (usecases, deps):
        done = usecases.reseal_signing_keys(deps)
        second_factors = import_module("identity.usecases.login").reseal_totp_secrets(deps)
    click.echo(f"tip: {done.count} signing keys resealed")
    if second_factors.count:
        click.echo(f"tip: {second_factors.count} secrets of second factors resealed")
    if done.unopened:
        raise Fault(f"signing keys {', '.join(done.unopened)} are under a key that is not given here")
    if second_factors.unopened:
        raise Fault(f"second factors of users {', '.join(second_factors.unopened)} are under a key not given here")


@contextmanager
def identity() -> Iterator[tuple[Any, Any]]:
    """identity's use cases, and what they work with."""
    with database(Settings.from_env()) as stack:
        config = import_module("identity.config").Config.from_env(stack.signing_env)
        deps = import_module("identity.app").dependencies(config)
        yield import_module("identity.usecases"), deps
        deps.engine.dispose()
