"""The `tip` command. Each subcommand is a module of its own with a click command named `command`."""

import traceback
from importlib import import_module
from typing import IO, Any

import click

from tip_local.errors import Fault

SUBCOMMANDS = {
    name: f"tip.{name.replace('-', '_')}"
    for name in (
        *("up", "start", "stop", "status", "logs", "migrate"),
        *("token", "signing-keys", "log-keys", "outbox", "orders", "vault", "epoch", "verify", "broker"),
    )
}
"""Loaded on use, so that the others start quickly."""


class Failure(click.ClickException):
    """One line, exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"tip: {self.message}", file=file, err=True)


class Subcommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in SUBCOMMANDS:
            return None
        command: click.Command = import_module(SUBCOMMANDS[cmd_name]).command
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except Fault as fault:
            raise Failure(str(fault)) from fault
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click says and does what is right
        except Exception as error:
            click.echo(traceback.format_exc(), err=True)
            raise Failure(f"unexpected {type(error).__name__}: {error}") from error


@click.group(cls=Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The Trading Intents Platform on this machine."""


if __name__ == "__main__":
    main()
