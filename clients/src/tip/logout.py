"""`tip logout`"""

import click

from tip.exits import WRONG_USAGE, Failure
from tip.session import Session, with_session


@click.command()
@click.option("--local", is_flag=True, help="Only forget it here, without the provider, where it stays good.")
@with_session
def command(session: Session, local: bool) -> None:
    """Sign out: end the login of a profile at its provider, and forget it here.

    Its last access token runs out by itself, within minutes. The profile keeps its address for the next `tip login`.
    """
    from tip import login_profile

    name = login_profile.name_of(session.profile)
    if not login_profile.is_login(name):
        raise Failure(f"profile {name!r} has no login", WRONG_USAGE, hint="`tip profiles` shows which have")
    revoked = not local and revoke(name)
    login_profile.forget(name)
    at_provider = "" if revoked else "; at the provider it runs out by itself"
    session.out.result({"profile": name, "revoked": revoked}, f"signed out of profile {name}{at_provider}")


def revoke(name: str) -> bool:
    """A login that is not good any more needs no revoking."""
    from tip.login_profile import stored
    from tip_client import ConfigurationError, LoginEnded, LoginRefused

    try:
        return stored(name).revoke()
    except (LoginEnded, LoginRefused, ConfigurationError):
        return False
