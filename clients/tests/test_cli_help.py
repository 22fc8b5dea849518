"""`tip --help` is quick, complete, and its examples are commands that there are."""

import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from tip import catalog, cli
from tip.examples import EXAMPLES
from tip.orders import FOR_OPERATORS

HEAVY = {"tip_client", "httpx", "rich", "sqlalchemy", "flask", "grpc", "tomlkit", "cryptography", "requests", "asyncio"}


def commands_of(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield words
    if isinstance(command, click.Group):
        ctx = click.Context(command, info_name=words[-1] if words else "tip")
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from commands_of(below, (*words, name))


COMMANDS = [" ".join(words) for words in commands_of(cli.main, ()) if words]


def imported_by(*words: str) -> set[str]:
    program = (
        "import sys; from tip.cli import main\n"
        f"try: main({list(words)!r})\n"
        "except SystemExit: print('\\n' + ' '.join(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    return {name.partition(".")[0] for name in shown.splitlines()[-1].split()}


@pytest.mark.parametrize(
    "words",
    [
        ["--help"], ["--version"], ["buy", "--help"], ["orders", "-h"], ["nonsense"], ["accounts", "-h"],
        ["watch", "-h"],
        ["credentials", "add", "-h"], ["limits", "set", "-h"], ["controls", "-h"], ["keys", "-h"], ["statement", "-h"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_help_imports_nothing_that_takes_long(words: list[str]) -> None:
    assert imported_by(*words) & HEAVY == set()


def test_help_lists_every_command_with_its_own_summary() -> None:
    ctx = click.Context(cli.main)

    orders = cli.main.get_command(ctx, "orders")
    below = {name: orders.get_command(ctx, name).get_short_help_str(200) for name in FOR_OPERATORS}

    assert below == FOR_OPERATORS
    shown = {name: cli.main.get_command(ctx, name).get_short_help_str(200) for name in catalog.SUMMARIES}

    assert shown == catalog.SUMMARIES


@pytest.mark.parametrize("words", COMMANDS)
def test_every_help_has_an_example(words: str) -> None:
    shown = CliRunner().invoke(cli.main, [*words.split(), "--help"])

    assert shown.exit_code == 0
    assert f" {words}" in shown.output.partition("Examples:")[2]


@pytest.mark.parametrize("example", [line for words in COMMANDS for line in EXAMPLES.get(words, ())])
def test_every_example_is_a_command(example: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "statement.jsonl").touch()
    line = example.removeprefix('eval "$(').removesuffix(')"')
    for redirection in (" | ", " < ", " > "):
        line = line.partition(redirection)[0]

    parse(cli.main, shlex.split(line)[1:], None)


def parse(command: click.Command, words: list[str], parent: click.Context | None) -> None:
    """As click does before it calls the command."""
    with command.make_context(command.name, words, parent=parent) as ctx:
        rest = [*ctx._protected_args, *ctx.args]
        if isinstance(command, click.Group) and rest:
            _, below, others = command.resolve_command(ctx, rest)
            assert below is not None
            parse(below, others, ctx)


def test_the_version_is_shown() -> None:
    assert CliRunner().invoke(cli.main, ["--version"]).output.startswith("tip 0.")


def test_a_command_without_json_says_so() -> None:
    answer = CliRunner().invoke(cli.main, ["--json", "stop"])

    assert answer.exit_code == 2 and "tip stop has no --json" in answer.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_for_every_shell(shell: str) -> None:
    script = CliRunner().invoke(cli.main, ["completion", shell])

    assert script.exit_code == 0 and "_TIP_COMPLETE" in script.output


def test_completion_offers_commands_and_their_options() -> None:
    def offered(line: str) -> list[str]:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TIP_COMPLETE": "bash_complete"}
        shown = CliRunner().invoke(cli.main, env=words, prog_name="tip", complete_var="_TIP_COMPLETE").output
        return [item.partition(",")[2] for item in shown.split()]

    assert {"orders", "halt"} <= set(offered("tip "))
    assert offered("tip ord") == ["orders"]
    assert offered("tip buy --li") == ["--limit"]
    assert {"create", "delete"} <= set(offered("tip keys "))
    assert offered("tip people role x read") == ["read_only"]


def test_no_example_is_of_a_command_that_there_is_not() -> None:
    assert set(EXAMPLES) - set(COMMANDS) == set()
