"""`tip status`"""

import sys
from datetime import datetime

import click

from tip_local import control
from tip_local.banner import addresses
from tip_local.settings import Settings

NOT_RUNNING = 3


@click.command()
def command() -> None:
    """Show what is running. Exit code 3 if nothing is."""
    settings = Settings.from_env()
    status = control.status(settings)
    if status is None:
        click.echo("tip: not running")
        sys.exit(NOT_RUNNING)
    click.echo(f"{overall(status)}, pid {status.pid}, up since {local_time(status.since)}\n")
    if status.ready and status.local:
        click.echo("\n".join([*addresses(status.local), f"  Keys, tokens  {settings.home / 'local.json'}", ""]))
    click.echo(row("PROCESS", "STATE", "PID", "UP SINCE", "RESTARTS"))
    for process in status.processes:
        click.echo(row(process.name, process.state, process.pid or "-", local_time(process.since), process.restarts))


def overall(status: control.Status) -> str:
    if not status.ready:
        return "starting"
    return "ready" if all(process.state == "ready" for process in status.processes) else "not all ready"


def row(name: str, state: str, pid: object, since: str, restarts: object) -> str:
    return f"{name:<20} {state:<11} {pid!s:>8}  {since:<20} {restarts!s:>8}"


def local_time(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else "-"
