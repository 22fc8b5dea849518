"""`tip login`"""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from tip.exits import REFUSED, WRONG_USAGE, Failure
from tip.session import Session, with_caller

if TYPE_CHECKING:
    from tip_client.oauth import OAuthClient, Provider, Tokens


@click.command()
@click.option("--url", help="The address of the API: the profile's former one if not given, else the platform here.")
@click.option(
    "--ca", type=click.Path(exists=True, dir_okay=False, resolve_path=True), help="Its certificate authority."
)
@click.option("--issuer", metavar="URL", help="The OpenID Connect provider of the installation, if it has one.")
@click.option("--client-id", metavar="ID", help="With --issuer: the client that stands for `tip` at the provider.")
@click.option("--scope", metavar="WORDS", help="With --issuer: what to request there, such as 'openid offline_access'.")
@click.option("--browser", is_flag=True, help="Sign in by a browser on this machine, without a code to type.")
@click.option("--port", type=click.IntRange(1, 65535), help="With --browser: where it comes back to, if not any port.")
@with_caller
def command(
    url: str | None,
    ca: str | None,
    issuer: str | None,
    client_id: str | None,
    scope: str | None,
    browser: bool,
    port: int | None,
) -> None:
    """Sign in, and keep the login as a profile.

    It prints an address and a code, and waits until you have entered the code there, in a browser on any machine. The
    login is stored in your configuration folder for you alone; tokens are refreshed by themselves, for up to 30 days.
    """
    from tip import login_profile
    from tip_client.oauth import PLATFORM_CLIENT, OAuthClient

    if bool(issuer) != bool(client_id) or (scope and not issuer):
        raise Failure("--issuer and --client-id belong together, and --scope to them", WRONG_USAGE)
    session = Session(click.get_current_context())
    name = login_profile.name_of(session.profile)
    values = login_profile.addresses(name, url, ca)
    with OAuthClient(client_id or PLATFORM_CLIENT, scope=scope, ca=values.get("ca")) as client:
        provider = client.discover(issuer or values["url"], issuer=issuer)
        tokens = sign_in(client, provider, browser=browser, port=port)
    who = login_profile.checked(values, tokens)
    login_profile.keep(name, values, client.client_id, provider, tokens)
    show(session, name, values["url"], who)


def sign_in(client: "OAuthClient", provider: "Provider", *, browser: bool, port: int | None) -> "Tokens":
    """By a code to type, unless a browser here is wished for or the provider knows no other way."""
    from tip_client import LoginRefused

    require_a_way(provider)
    try:
        if browser or provider.device_endpoint is None:
            return by_browser(client, provider, port)
        return by_device(client, provider)
    except LoginRefused as refusal:
        hint = "run `tip login` again" if refusal.code in ("access_denied", "expired_token") else None
        raise Failure(f"not signed in: {refusal}", REFUSED, refusal.code, hint) from None


def require_a_way(provider: "Provider") -> None:
    if provider.device_endpoint is None and provider.authorization_endpoint is None:
        hint = "people sign in at its OpenID Connect provider: give --issuer and --client-id"
        raise Failure("nobody signs in at this address", REFUSED, "login_elsewhere", hint)


def by_device(client: "OAuthClient", provider: "Provider") -> "Tokens":
    device = client.begin_device(provider)
    say(f"Open {device.verification_uri} in a browser and enter the code {device.user_code}")
    if device.verification_uri_complete:
        say(f"or open {device.verification_uri_complete}")
    say(f"Waiting, for up to {device.expires_in / 60:.0f} minutes; Ctrl-C gives up.")
    return client.await_device(provider, device)


def by_browser(client: "OAuthClient", provider: "Provider", port: int | None) -> "Tokens":
    from tip.callback import Callback

    with Callback(port or 0) as callback:
        request = client.begin_code(provider, callback.address)
        say(f"Open {request.address} in a browser on this machine")
        return client.redeem(provider, request, callback.wait())


def say(text: str) -> None:
    """For the person alone: standard output has the result."""
    click.echo(text, err=True)


def show(session: Session, name: str, url: str, who: str) -> None:
    from tip import profile_file

    chosen = profile_file.default() == name
    use = "" if chosen else f"; `tip profiles use {name}` makes it the default"
    record = {"profile": name, "url": url, "subject": who, "default": chosen}
    session.out.result(record, f"signed in at {urlsplit(url).netloc} as {who}, profile {name}{use}")
