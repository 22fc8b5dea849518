"""`tip logs`"""

import click

from tip_local import control
from tip_local.settings import Settings
from tip_local.tail import follow, last_lines


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--follow", "keep_on", is_flag=True, help="Keep on showing what is added.")
@click.option("-n", "--lines", default=100, show_default=True, type=click.IntRange(min=0))
def command(name: str | None, keep_on: bool, lines: int) -> None:
    """Show the log of everything, or of one process."""
    file = control.log_file(Settings.from_env(), name)
    for line in last_lines(file, lines):
        click.echo(line)
    if keep_on:
        for piece in follow(file):
            click.echo(piece, nl=False)
