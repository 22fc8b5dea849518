"""`tip up`"""

import sys

import click

from tip_local.settings import Settings
from tip_local.up import up


@click.command()
def command() -> None:
    """Run the whole platform here, until Ctrl-C."""
    up(Settings.from_env(), console=sys.stdout)
