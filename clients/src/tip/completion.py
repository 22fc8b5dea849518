"""`tip completion`"""

import click
from click.shell_completion import get_completion_class

VARIABLE = "_TIP_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    Evaluate it in the shell's start-up file.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(kind(click.get_current_context().find_root().command, {}, "tip", VARIABLE).source())
