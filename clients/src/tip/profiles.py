"""`tip profiles`"""

import os
from typing import Any
from uuid import UUID

import click

from tip import profile_file
from tip.callers import DEMO, has_demo_data
from tip.exits import WRONG_USAGE, Failure
from tip.secrets_input import read_secret
from tip.session import Session, with_caller, with_session
from tip_client import Settings, StoredLogin
from tip_client.settings import LOCAL_URL
from tip_client.stored_login import login_file

PLACES = ("url", "events_url", "stream_target", "ca")
TITLES = ("", "NAME", "URL", "ACCOUNT", "CREDENTIAL")


def _absolute(_ctx: click.Context, _option: click.Parameter, path: str | None) -> str | None:
    """Commands are called from other folders than the one where the profile was added."""
    return os.path.abspath(path) if path else None


@click.group(invoke_without_command=True)
@with_session
def command(session: Session) -> None:
    """List, add and choose profiles: address, credential, account.

    They are in tip/config.toml of your configuration folder, which the SDK reads, too. While the platform on this
    machine has demo data, `demo`, `demo-live` and `demo-admin` are there as well.
    """
    if not click.get_current_context().invoked_subcommand:
        list_profiles(session)


@command.command("list")
@with_session
def list_command(session: Session) -> None:
    """List profiles; the default one has a star."""
    list_profiles(session)


@command.command()
@click.argument("name")
@click.option("--url", help=f"The address of the API: the profile's former one if not given, else {LOCAL_URL}.")
@click.option("--token", is_flag=True, help="The credential is a bearer token, not an API key.")
@click.option("--organization", help="For tokens of service accounts.")
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False),
    callback=_absolute,
    help="The certificate authority of the platform.",
)
@click.option("--account", metavar="ID", type=click.UUID, help="The id of the account that it means.")
@with_caller
def add(name: str, token: bool, account: UUID | None, **values: str | None) -> None:
    """Add a profile, or replace the one of that name.

    The key is read from the terminal without being shown, or from standard input: not from the command line, where
    others can read it.
    """
    session = Session(click.get_current_context())
    credential = {"token" if token else "key": read_secret("Token" if token else "API key")}
    given = {setting: value for setting, value in values.items() if value}
    meant = account or session.named_account
    chosen = {"account": str(meant)} if meant else {}
    StoredLogin(login_file(profile_file.path(), name)).forget()
    save(name, {**places(name, given.get("url")), **given, **credential, **chosen})
    session.out.line(f"profile {name} is in {profile_file.path()}", mark="✓")


@command.command()
@click.argument("name")
@with_session
def use(session: Session, name: str) -> None:
    """Make a profile the default one."""
    require(name)
    profile_file.use(name)
    session.out.line(f"{name} is the default profile", mark="✓")


@command.command()
@click.argument("name")
@with_session
def remove(session: Session, name: str) -> None:
    """Remove a profile, with its credential. A login stays good at its provider: `tip logout` ends it."""
    require(name)
    profile_file.remove(name)
    StoredLogin(login_file(profile_file.path(), name)).forget()
    session.out.line(f"profile {name} is removed", mark="✓")


def list_profiles(session: Session) -> None:
    """Credentials are never shown."""
    default = profile_file.default()
    found = [_entry(name, values, name == default) for name, values in profile_file.profiles().items()]
    entries = [*found, *_demo_entries({entry["name"] for entry in found})]
    if session.out.as_json:
        session.out.document({"data": entries})
        return
    hint = "no profiles: `tip profiles add NAME` adds one"
    session.out.table(TITLES, [_row(entry) for entry in entries], empty=hint)


def _entry(name: str, values: dict[str, Any], is_default: bool) -> dict[str, Any]:
    credential = next((kind for kind in ("key", "token", "login") if kind in values), None)
    shown = {setting: values.get(setting) for setting in ("url", "account", "organization")}
    return {"name": name, **shown, "credential": credential, "default": is_default}


def _demo_entries(taken: set[str]) -> list[dict[str, Any]]:
    if not has_demo_data():
        return []
    kinds = {name: "key" if kind == "api_keys" else "token" for name, (kind, _, _) in DEMO.items()}
    names = sorted(DEMO.keys() - taken)
    return [_entry(name, {kinds[name]: "", "url": "demo data of this machine"}, False) for name in names]


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    star, shown = "*" if entry["default"] else "", (entry["url"], entry["account"], entry["credential"])
    return (star, entry["name"], *(value or "-" for value in shown))


def places(name: str, url: str | None) -> dict[str, str]:
    """Where a new credential goes: to the former addresses of its profile, never to others that nobody named."""
    former = {} if url else profile_file.profiles().get(name, {})
    return {"url": url or LOCAL_URL, **{setting: former[setting] for setting in PLACES if setting in former}}


def save(name: str, values: dict[str, str]) -> None:
    """Only what the SDK takes is written."""
    Settings(**values)  # type: ignore[arg-type]  # it refuses what is no address or credential
    profile_file.add(name, values)


def require(name: str) -> None:
    if name not in profile_file.names():
        raise Failure(f"{profile_file.path()} has no profile {name!r}", WRONG_USAGE, hint="`tip profiles` lists them")
