"""`tip resume`"""

import click

from tip.session import Session, with_session
from tip.trading_state import set_state


@click.command()
@click.option("--organization", is_flag=True, help="Every account of the organization; for its admins.")
@click.option("--reason", help="Kept in the log.")
@with_session
def command(session: Session, organization: bool, reason: str | None) -> None:
    """Accept orders again after a halt."""
    set_state(session, "ACTIVE", organization=organization, reason=reason)
