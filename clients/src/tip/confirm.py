"""A question before what cannot be taken back, on live accounts."""

import sys
from typing import TYPE_CHECKING

import click

from tip.exits import REFUSED, WRONG_USAGE, Failure
from tip.plain import short
from tip.session import Session

if TYPE_CHECKING:
    from tip_client import Client

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def confirm_live(session: Session, what: str, *, yes: bool) -> None:
    """Ask if the account is a live one; `{account}` in the question is its name."""
    if not yes and (live := live_account(session.account_client)):
        confirm(what.replace("{account}", live))


def confirm_state(session: Session, what: str, *, organization: bool, yes: bool) -> None:
    """Ask before the trading state of a live account, or of all of an organization, changes."""
    if not organization:
        confirm_live(session, f"{{account}} {what}", yes=yes)
    elif not yes:
        confirm(f"Every account of the organization {what}")


def confirm(what: str) -> None:
    """Ask the person at the terminal; without one, --yes is needed."""
    if not sys.stdin.isatty():
        raise Failure(f"{what}: give --yes to do this without a terminal", WRONG_USAGE, "confirmation_needed")
    if not click.confirm(f"{what}. Go on?", err=True):
        raise Failure("nothing was done", REFUSED, "not_confirmed")


def live_account(client: "Client") -> str | None:
    """How it is called, if it is a live one; one that the caller may not read counts as live."""
    from tip_client import Environment, Forbidden

    try:
        account = client.accounts.read(client.account_id)
    except Forbidden:
        return f"account {short(client.account_id)}"
    is_paper = account.environment is Environment.PAPER
    return None if is_paper else f"live account {account.name!r} ({short(account.id)})"
