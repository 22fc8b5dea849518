"""`tip epoch`"""

from importlib import import_module

import click

from tip.outbox import connected


@click.group()
def command() -> None:
    """Show the epochs of the event logs, and begin one after a restore."""


@command.command("list")
def list_epochs() -> None:
    """Show every epoch, the current one last."""
    with connected("intents") as tx:
        epochs = import_module("intents.store").epochs(tx)
    click.echo(f"{'EPOCH':<36}  {'STARTED':<20}  REASON")
    for epoch, started_at, reason in epochs:
        click.echo(f"{epoch!s:<36}  {started_at.strftime('%Y-%m-%dT%H:%M:%SZ'):<20}  {reason}")


@command.command()
def begin() -> None:
    """Begin a new epoch: every open stream, resume position and list cursor is over.

    Do it after files of the data directory were put back, and before the services start. A point-in-time recovery and a
    restored dump are noticed without it.
    """
    with connected("intents") as tx:
        begun = import_module("intents.store").begin_epoch(tx)
    click.echo(f"tip: log epoch {begun} has begun; streams, positions and cursors of earlier ones are over")
