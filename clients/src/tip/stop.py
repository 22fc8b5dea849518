"""`tip stop`"""

import click

from tip_local import control
from tip_local.settings import Settings


@click.command()
def command() -> None:
    """Stop the platform; returns when everything has ended."""
    stopped = control.stop(Settings.from_env())
    click.echo("tip: stopped" if stopped else "tip: was not running")
