"""`tip token`"""

import base64
import json
import time
from typing import Any

import click

from tip_local.errors import Fault
from tip_local.home import Home
from tip_local.settings import Settings

ROLES = ("admin", "member", "read_only")
WHO = (*ROLES, "service_account", "no_organization")


@click.command()
@click.argument("who", type=click.Choice(WHO), default="admin")
@click.option("-o", "--organization", default="acme", show_default=True, help="Whose user; ignored for the others.")
@click.option("--lifetime", type=click.IntRange(min=1), help="Issue a new one that is valid for so many seconds.")
def command(who: str, organization: str, lifetime: int | None) -> None:
    """Print a bearer token of the demo data."""
    settings = Settings.from_env()
    token = demo_token(Home(settings.home), who, organization)
    if lifetime or expires_at(token) <= time.time():
        token = issue(settings, token, lifetime or 3600)
    click.echo(token)


def demo_token(home: Home, who: str, organization: str) -> str:
    try:
        local: dict[str, Any] = json.loads(home.local_file.read_text())
        if who == "service_account":
            return str(local["service_accounts"]["full"]["token"])
        if who == "no_organization":
            return str(local["tokens"]["user_without_organization"])
        return str(local["organizations"][organization]["tokens"][who])
    except (OSError, ValueError) as error:
        raise Fault(f"there is no demo data in {home.path}; `make up` or `make start` makes it") from error
    except KeyError as error:
        raise Fault(f"the demo data has no {who} of {organization}") from error


def claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    read: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return read


def expires_at(token: str) -> float:
    return float(claims(token)["exp"])


def issue(settings: Settings, like: str, lifetime: int) -> str:
    """A new token with the same claims."""
    from identity import usecases
    from tip_local.identity_seed import IdentitySeed
    from tip_local.stack import running_stack

    kept = {name: value for name, value in claims(like).items() if name not in ("iss", "aud", "iat", "exp", "jti")}
    identity = IdentitySeed(running_stack(settings).signing_env)
    try:
        return usecases.issue_token(identity.deps, kept, lifetime_s=lifetime)
    finally:
        identity.close()
