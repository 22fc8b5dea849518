"""`tip logs`"""

from uuid import UUID

import click

from tip_local import control
from tip_local.settings import Settings
from tip_local.tail import follow, last_lines


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--follow", "keep_on", is_flag=True, help="Keep on showing what is added.")
@click.option("-n", "--lines", default=100, show_default=True, type=click.IntRange(min=0))
@click.option("--intent", metavar="ID", type=click.UUID, help="Only what happened to this intent, in every process.")
def command(name: str | None, keep_on: bool, lines: int, intent: UUID | None) -> None:
    """Show the log of everything, or of one process."""
    file, containing = control.log_file(Settings.from_env(), name), str(intent or "")
    for line in last_lines(file, lines, containing):
        click.echo(line)
    if keep_on:
        for piece in follow(file):
            if containing in piece:
                click.echo(piece, nl=False)
