"""A question before what cannot be taken back, on live accounts."""

import sys
from typing import TYPE_CHECKING

import click

from tip.exits import REFUSED, WRONG_USAGE, Failure
from tip.session import Session

if TYPE_CHECKING:
    from tip_client import Client

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def confirm_live(session: Session, what: str, *, yes: bool) -> None:
    """Ask if the account is a live one."""
    if not yes and is_live(session.account_client):
        confirm(what)


def confirm(what: str) -> None:
    """Ask the person at the terminal; without one, --yes is needed."""
    if not sys.stdin.isatty():
        raise Failure(f"{what}: give --yes to do this without a terminal", WRONG_USAGE, "confirmation_needed")
    if not click.confirm(f"{what}. Go on?", err=True):
        raise Failure("nothing was done", REFUSED, "not_confirmed")


def is_live(client: "Client") -> bool:
    """By the account itself; one that the caller may not read counts as live."""
    from tip_client import Environment, Forbidden

    try:
        return client.accounts.read(client.account_id).environment is not Environment.PAPER
    except Forbidden:
        return True
