"""`tip halt`"""

import click

from tip.confirm import confirm_state, yes_option
from tip.order_entry import wait_options
from tip.session import Session, with_session
from tip.trading_state import set_state, show_cancels


@click.command()
@click.option("--cancel-open", is_flag=True, help="Cancel all open orders, too.")
@click.option("--reducing", is_flag=True, help="Accept orders that reduce a position.")
@click.option("--organization", is_flag=True, help="Every account of the organization; for its admins.")
@click.option("--reason", help="Kept in the log, and shown to whoever is refused.")
@yes_option
@wait_options
@with_session
def command(
    session: Session, cancel_open: bool, reducing: bool, organization: bool, reason: str | None,
    yes: bool, wait: bool, timeout: float,
) -> None:  # fmt: skip
    """Refuse every new order of an account or organization.

    On a live account, and for the whole organization, it asks for confirmation. With --cancel-open and --wait it
    returns when every open order has ended.
    """
    if reducing and cancel_open:
        raise click.UsageError("--cancel-open goes with a full halt, not with --reducing")
    if wait and (organization or not cancel_open):
        raise click.UsageError("--wait goes with --cancel-open, and with one account")
    confirm_state(session, "is halted", organization=organization, yes=yes)
    state = "REDUCING" if reducing else "HALTED"
    switch = set_state(session, state, organization=organization, reason=reason, cancel_open=cancel_open)
    if wait and switch.bulk_operation_id:
        show_cancels(session, switch.bulk_operation_id, timeout)
