"""`tip resume`"""

import click

from tip.confirm import confirm_state, yes_option
from tip.session import Session, with_session
from tip.trading_state import set_state


@click.command()
@click.option("--organization", is_flag=True, help="Every account of the organization; for its admins.")
@click.option("--reason", help="Kept in the log.")
@yes_option
@with_session
def command(session: Session, organization: bool, reason: str | None, yes: bool) -> None:
    """Accept orders again after a halt.

    For a live account, and for the whole organization, it asks for confirmation.
    """
    confirm_state(session, "accepts orders again", organization=organization, yes=yes)
    set_state(session, "ACTIVE", organization=organization, reason=reason)
