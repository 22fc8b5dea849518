"""`tip keys`"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tip.amounts import AMOUNT
from tip.confirm import confirm, yes_option
from tip.lookup import find, not_empty
from tip.moments import Duration, clock
from tip.plain import short
from tip.sending import interruptible
from tip.session import Session, with_caller, with_session

if TYPE_CHECKING:
    from tip_client.models.identity import ApiKey, CreatedApiKey, KeyBounds

TITLES = ("ID", "NAME", "ENVIRONMENT", "STATE", "PREFIX", "PERMISSIONS", "BOUNDS", "EXPIRES", "LAST USED")

_key_argument = click.argument("key", callback=not_empty)
_permissions = click.option(
    "--permission",
    "permissions",
    multiple=True,
    help="read or edit of intent, control, account or credential, such as intent:edit; may be repeated.",
)
_expires = click.option("--expires", type=Duration(), help="It ends so long from now, such as 90d.")


@click.group(invoke_without_command=True)
@with_session
def command(session: Session) -> None:
    """List, create, change and delete API keys of the organization.

    For its admins. KEY is a name, an id, or how an id begins.
    """
    if not click.get_current_context().invoked_subcommand:
        list_keys(session)


@command.command("list")
@with_session
def list_command(session: Session) -> None:
    """List API keys, without the keys themselves."""
    list_keys(session)


def list_keys(session: Session) -> None:
    session.out.records(session.client.keys.list(), TITLES, key_row, empty="no keys")


@command.command()
@click.argument("name", callback=not_empty)
@click.option("--environment", type=click.Choice(["paper", "live"]), required=True)
@_permissions
@_expires
@click.option("--account", "accounts", multiple=True, help="It sees no other account; may be repeated.", metavar="ID")
@click.option("--symbol", "symbols", multiple=True, help="It trades no other symbol; may be repeated.")
@click.option("--max-notional-per-day", "budget", type=AMOUNT, help="What its orders may come to in a day.")
@with_caller
def create(name: str, environment: str, permissions: tuple[str, ...], expires: timedelta | None, **bounds: Any) -> None:
    """Create an API key, and print it: it is shown this once and never again.

    Standard output holds nothing but the key, so that it can be piped to where it is kept.
    """
    if not permissions:
        raise click.UsageError("give at least one --permission")
    session = Session(click.get_current_context())
    terms: dict[str, Any] = {"environment": environment, "permissions": permissions, "expires_at": from_now(expires)}
    terms["bounds"] = key_bounds(session, **bounds)
    made = interruptible(None, lambda: session.client.keys.create(name, **terms))
    show_created(session, made)


@command.command()
@_key_argument
@click.option("--name", callback=not_empty)
@_permissions
@_expires
@yes_option
@with_session
def change(
    session: Session, key: str, name: str | None, permissions: tuple[str, ...], expires: timedelta | None, yes: bool
) -> None:
    """Rename a key, or change its permissions or its end. Of a live key it asks for confirmation."""
    changes = {"name": name, "permissions": permissions or None, "expires_at": from_now(expires)}
    given = {setting: value for setting, value in changes.items() if value is not None}
    if not given:
        raise click.UsageError("give --name, --permission or --expires")
    save(session, key, "is changed", given, yes=yes)


@command.command()
@_key_argument
@yes_option
@with_session
def disable(session: Session, key: str, yes: bool) -> None:
    """Refuse whoever uses a key, until it is enabled. Of a live key it asks for confirmation."""
    save(session, key, "is disabled", {"disabled": True}, yes=yes)


@command.command()
@_key_argument
@yes_option
@with_session
def enable(session: Session, key: str, yes: bool) -> None:
    """Accept a key again. Of a live key it asks for confirmation."""
    save(session, key, "is enabled", {"disabled": False}, yes=yes)


@command.command()
@_key_argument
@yes_option
@with_session
def delete(session: Session, key: str, yes: bool) -> None:
    """Delete a key, for ever. Of a live key it asks for confirmation."""
    found = key_of(session, key)
    confirm_live_key(found, "is deleted", yes=yes)
    interruptible(None, lambda: session.client.keys.delete(found.id))
    session.out.result({"id": found.id, "deleted": True}, f"{called(found)} is deleted")


def save(session: Session, key: str, what: str, changes: dict[str, Any], *, yes: bool) -> None:
    found = key_of(session, key)
    confirm_live_key(found, what, yes=yes)
    changed = interruptible(None, lambda: session.client.keys.change(found.id, **changes))
    session.out.result(changed, f"{called(changed)} {what}")


def confirm_live_key(key: "ApiKey", what: str, *, yes: bool) -> None:
    if key.environment != "paper" and not yes:
        confirm(f"{called(key)} of the {key.environment} environment {what}")


def show_created(session: Session, made: "CreatedApiKey") -> None:
    if session.out.as_json:
        session.out.document(made)
        return
    click.echo(f"{called(made)} is created. Keep it: it is not shown again.", err=True)
    session.out.line(made.key)


def key_bounds(
    session: Session, accounts: tuple[str, ...], symbols: tuple[str, ...], budget: Decimal | None
) -> "KeyBounds | None":
    from tip_client.models.identity import KeyBounds

    seen = [account_of(session, account) for account in accounts]
    bounds = KeyBounds(tuple(seen) or None, symbols or None, budget)
    return None if bounds == KeyBounds() else bounds


def account_of(session: Session, text: str) -> str:
    return find(session.client.accounts.list(), text, "account", lambda account: account.name).id


def from_now(duration: timedelta | None) -> datetime | None:
    return None if duration is None else datetime.now(UTC) + duration


def key_of(session: Session, text: str) -> "ApiKey":
    return find(session.client.keys.list(), text, "key", lambda key: key.name)


def called(key: "ApiKey") -> str:
    return f"key {key.name!r} ({short(key.id)})"


def bounds_text(bounds: "KeyBounds | None") -> str:
    if bounds is None:
        return "-"
    parts = [*map(short, bounds.accounts or ()), *(bounds.symbols or ())]
    budget = bounds.max_notional_per_day
    return " ".join([*parts, *([f"{budget:f}/day"] if budget is not None else [])])


def key_row(key: "ApiKey") -> tuple[str, ...]:
    about = (str(key.environment), "disabled" if key.disabled else "enabled", key.prefix, " ".join(key.permissions))

    ends = (bounds_text(key.bounds), clock(key.expires_at), clock(key.last_used_at))
    return (short(key.id), key.name, *about, *ends)
