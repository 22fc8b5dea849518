"""The `tip` command. Each subcommand is a module of its own with a click command named `command`."""

import sys
import traceback
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from tip import catalog
from tip.examples import with_examples
from tip.exits import REFUSED, Failure
from tip.output import replace_what_cannot_be_encoded
from tip.plain import printable
from tip.session import common_options, has_json, shown_as_json
from tip_local.errors import Fault

SUBCOMMANDS = {name: catalog.module_of(name) for name in catalog.SUMMARIES}
"""Loaded on use, so that the others start quickly."""


class Subcommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in SUBCOMMANDS:
            return None
        command: click.Command = import_module(SUBCOMMANDS[cmd_name]).command
        return with_examples(command, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command and shown_as_json(ctx) and not has_json(command):
            ctx.fail(f"tip {name} has no --json")
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for section, commands in catalog.SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl(list(commands.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in SUBCOMMANDS if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=catalog.SUMMARIES.get(name)) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> object:
        replace_what_cannot_be_encoded()
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError, KeyboardInterrupt):
            raise  # click says and does what is right
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported and ends with its exit code
            failure = failure_of(error)
            report(failure, as_json=shown_as_json(ctx))
            sys.exit(failure.exit_code)


def failure_of(error: Exception) -> Failure:
    if isinstance(error, Failure):
        return error
    if isinstance(error, Fault):
        return Failure(str(error))
    return _sdk_failure(error) or _unexpected(error)


def _sdk_failure(error: Exception) -> Failure | None:
    """Of an error that the SDK raised; it is imported only if it was in use."""
    if "tip_client" not in sys.modules:
        return None
    tip_client, sdk_failures = import_module("tip_client"), import_module("tip.sdk_failures")
    found: Failure | None = sdk_failures.failure_of(error) if isinstance(error, tip_client.TipError) else None
    return found


def _unexpected(error: Exception) -> Failure:
    for line in "".join(traceback.format_exception(error)).split("\n"):
        _complain(f"     {line}")
    return Failure(f"unexpected {type(error).__name__}: {error}", REFUSED)


def report(failure: Failure, *, as_json: bool) -> None:
    """On standard error, so that standard output holds nothing but results."""
    if as_json:
        click.echo(import_module("json").dumps(failure.document()), err=True)
        return
    for line in failure.lines():
        _complain(line)


def _complain(line: str) -> None:
    """An error may hold other people's words: each line is one line, and no terminal obeys it."""
    click.echo(printable(line), err=True)


@click.group(
    cls=Subcommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage, 3 not running or unreachable, 4 timed out with the outcome "
    "unknown. Docs: docs/cli.md",
)
@click.version_option(package_name="tip-cli", prog_name="tip", message="%(prog)s %(version)s")
@common_options
def main() -> None:
    """The Trading Intents Platform: trade, control and operate it.

    Credentials come from TIP_URL, TIP_KEY and TIP_ACCOUNT, from a profile (`tip profiles`), or from the demo data of
    the platform that runs on this machine.
    """


if __name__ == "__main__":
    main()
