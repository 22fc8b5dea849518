"""`tip migrate`"""

import click

from tip_local.schema import migrate_only
from tip_local.settings import Settings


@click.command()
@click.option("--down", is_flag=True, help="Take every migration back: removes all schemas and their data.")
def command(down: bool) -> None:
    """Bring the database schema up to date."""
    migrate_only(Settings.from_env(), down=down)
    click.echo("tip: migrations taken back" if down else "tip: schema up to date")
