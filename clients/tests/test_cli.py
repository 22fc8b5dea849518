import sys
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from tip import cli
from tip.exits import Failure
from tip_local.errors import Fault


@pytest.fixture
def tip(tmp_path, monkeypatch):
    monkeypatch.setenv("TIP_HOME", str(tmp_path / "home"))
    return lambda *words: CliRunner().invoke(cli.main, words)


@pytest.fixture
def subcommand(monkeypatch):
    """Offer `tip broken`, which does what the test wants."""

    def offer(action):
        module = ModuleType("tip.broken")
        module.command = click.command()(action)
        monkeypatch.setitem(sys.modules, "tip.broken", module)
        monkeypatch.setitem(cli.SUBCOMMANDS, "broken", "tip.broken")

    return offer


def raising(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        (["status"], 3, "tip: not running\n"),
        (["stop"], 0, "tip: was not running\n"),
        (["logs", "web"], 1, "tip: no log of web in "),
        (["logs", "../../etc/passwd"], 1, "tip: no log of ../../etc/passwd in "),
    ],
)
def test_it_says_so_when_nothing_runs(tip, words, code, output):
    done = tip(*words)

    assert done.exit_code == code
    assert done.output.startswith(output)


def test_the_log_can_be_read_by_intent(tip, tmp_path):
    intent, other = "93327def-0000-4000-8000-000000000001", "93327def-0000-4000-8000-000000000002"
    lines = [
        f"send_started intent_id={intent}",
        f"send_started intent_id={other}",
        f"order_reported intent_id={intent}",
    ]
    logs = tmp_path / "home" / "logs"
    logs.mkdir(parents=True)
    (logs / "all.log").write_text("\n".join(lines) + "\n")

    assert tip("logs", "--intent", intent).output.splitlines() == [lines[0], lines[2]]
    assert tip("logs", "--intent", "x").exit_code == 2


def test_every_command_is_in_the_list_and_no_other_is_taken(tip):
    listed = tip("--help").output

    assert all(f"  {name} " in listed for name in cli.SUBCOMMANDS)
    assert tip("later").exit_code == 2


def test_a_fault_is_one_line(tip, subcommand):
    subcommand(raising(Fault("port 8080 is taken")))

    done = tip("broken")

    assert (done.exit_code, done.output) == (1, "tip: port 8080 is taken\n")


def test_a_stack_trace_is_never_the_last_word(tip, subcommand):
    subcommand(raising(KeyError("surprise")))

    done = tip("broken")

    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == "tip: unexpected KeyError: 'surprise'"


HOSTILE = "\x1b]0;title\x07 \x9b31m \u202e\nroot# "
"""A terminal's title, a colour of the C1 set, text from right to left, a line of one's own."""


@pytest.mark.parametrize(
    "error", [Fault(HOSTILE), Failure("m", hint=HOSTILE, request_id=HOSTILE), ValueError(HOSTILE)], ids=repr
)
def test_a_terminal_obeys_nothing_that_an_error_says(tip, subcommand, error):
    subcommand(raising(error))

    shown = tip("broken").stderr

    assert shown.replace("\n", "").isprintable() and "\nroot# " not in shown


def test_a_bad_setting_names_its_variable(tip, monkeypatch):
    monkeypatch.setenv("TIP_PORT", "eighty")

    done = tip("up")

    assert done.exit_code == 1
    assert done.output == "tip: TIP_PORT must be a port number from 1 to 65535, not 'eighty'\n"
