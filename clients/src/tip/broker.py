"""`tip broker`"""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.accounts import Broker

TITLES = ("NAME", "TITLE", "ENVIRONMENTS", "ORDERS", "CREDENTIAL")
KIT = "tip_testing.broker_check"
NEEDED = ("tip_testing", "pytest", "hypothesis", "pytest_timeout")
WRONG_USAGE = 2


@click.group()
def command() -> None:
    """List the platform's brokers, and check one that is installed here."""


@command.command("list")
@with_session
def list_brokers(session: Session) -> None:
    """List the brokers that the platform has, with what their credentials are made of."""
    session.out.records(session.client.accounts.brokers(), TITLES, broker_row, empty="no brokers")


def broker_row(broker: "Broker") -> tuple[str, ...]:
    secret = " ".join(part.name if part.required else f"[{part.name}]" for part in broker.credential)
    credential = secret if broker.needs_credential else f"none, or {secret}"
    return (broker.name, broker.title, " ".join(broker.environments), " ".join(broker.capabilities.kinds), credential)


@command.command()
@click.argument("name")
@click.option("--sandbox", is_flag=True, help="Check at the broker's sandbox instead of its simulator.")
@click.option("--credentials", type=click.Path(path_type=Path), help="A JSON file with what opens an account there.")
@click.option("--symbol", help="What is traded at the sandbox.")
@click.option("--quantity", help="The smallest quantity of an order at the sandbox.  [default: 1]")
@click.option("--price", help="A price far below the market there.  [default: half of the latest one]")
@click.option("--fills", is_flag=True, help="Market orders fill there now: check that too, and keep what is bought.")
@click.option("--claim", multiple=True, help="Check this capability alone; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def check(context: click.Context, /, name: str, sandbox: bool, fills: bool, as_json: bool, **options: object) -> None:
    """Run the conformance kit against a broker's adapter: does it keep what it claims?

    Offline, against the simulator that the broker's package names; with --sandbox at the broker's sandbox, with the
    credential in the file, or in variables TIP_BROKER_..., one for each part. Never at a live environment.

    Exit codes: 0 everything claimed is kept, 1 something is not, 2 wrong usage, 3 the broker cannot be reached.
    """
    if missing := [module for module in NEEDED if find_spec(module) is None]:
        click.echo(f"tip: {', '.join(missing)} missing: install tip-testing[check] (here: make install-dev)", err=True)
        context.exit(WRONG_USAGE)
    flags = {"--sandbox": sandbox, "--fills": fills, "--json": as_json}
    words = [*(word for word, is_set in flags.items() if is_set), *_words(options)]
    context.exit(_run([*words, "--", name]))


def _run(words: Sequence[str]) -> int:
    """Ctrl-C is for the kit, which then cancels what it has open: it is waited for, however long that takes."""
    with subprocess.Popen([sys.executable, "-P", "-m", KIT, *words]) as kit:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # not earlier: the kit would inherit it
        try:
            return kit.wait()
        finally:
            signal.signal(signal.SIGINT, before)


def _words(options: Mapping[str, object]) -> Iterator[str]:
    for option, value in options.items():
        values = value if isinstance(value, tuple) else (value,)
        yield from (f"--{option}={part}" for part in values if part is not None)
