"""`tip start`"""

import time

import click

from tip_local import control
from tip_local.banner import banner
from tip_local.settings import Settings


@click.command()
def command() -> None:
    """Run the whole platform in the background; returns when it is ready."""
    began = time.monotonic()
    settings = Settings.from_env()
    if running := control.status(settings):
        click.echo(f"tip: already running (pid {running.pid})")
        return
    local = control.start(settings)
    click.echo(banner(local, time.monotonic() - began))
