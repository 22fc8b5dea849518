"""`tip accounts`"""

from typing import TYPE_CHECKING, Any

import click

from tip.confirm import confirm_live, yes_option
from tip.lookup import not_empty
from tip.moments import clock
from tip.plain import short, text_of
from tip.sending import interruptible
from tip.session import Session, with_caller, with_session

if TYPE_CHECKING:
    from tip_client import Client
    from tip_client.models.accounts import Account

TITLES = ("ID", "NAME", "BROKER", "ENVIRONMENT", "STATE", "TIME ZONE")
_ACCOUNT: dict[str, Any] = {"metavar": "ACCOUNT", "callback": not_empty}


@click.group(invoke_without_command=True)
@with_session
def command(session: Session) -> None:
    """List, create, change, disable and delete trading accounts.

    ACCOUNT is an id, the beginning of one, or a name.
    """
    if not click.get_current_context().invoked_subcommand:
        list_accounts(session)


@command.command("list")
@with_session
def list_command(session: Session) -> None:
    """List the trading accounts that the caller may see."""
    list_accounts(session)


def list_accounts(session: Session) -> None:
    session.out.records(session.client.accounts.list(), TITLES, account_row, empty="no accounts")


@command.command()
@click.argument("account", required=False, **_ACCOUNT)
@with_caller
def show(account: str | None) -> None:
    """Show an account: the one of the profile unless it is named."""
    session = session_of(account)
    found = session.client.accounts.read(session.account_id)
    if session.out.as_json:
        session.out.document(found)
    else:
        session.out.table(("FIELD", "VALUE"), account_details(found))


@command.command()
@click.argument("name", callback=not_empty)
@click.option("--broker", required=True, help="One of those that the platform has: `tip broker list`.")
@click.option("--environment", type=click.Choice(["paper", "live"]), required=True)
@click.option("--broker-account-id", help="Which of the credential's accounts at the broker is meant.")
@click.option("--time-zone", help="The zone of trading hours and of the day, such as Europe/Berlin.")
@with_session
def create(session: Session, /, name: str, **terms: Any) -> None:
    """Create a trading account.

    It trades once it has a credential: `tip credentials add`. The paper broker needs none.
    """
    made = interruptible(None, lambda: session.client.accounts.create(name, **terms))
    session.out.result(made, f"{called(made)} is created at {made.broker}, {made.environment}")


@command.command()
@click.argument("account", **_ACCOUNT)
@click.option("--name", callback=not_empty)
@click.option("--broker-account-id", callback=not_empty, help="Which of the credential's accounts there is meant.")
@click.option("--time-zone", callback=not_empty, help="The zone of trading hours and of the day.")
@yes_option
@with_caller
def change(account: str, yes: bool, **changes: str | None) -> None:
    """Rename an account, or change its time zone or its account at the broker.

    On a live account it asks for confirmation.
    """
    given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    if not given:
        raise click.UsageError("give --name, --broker-account-id or --time-zone")
    session = session_of(account)
    what = ", ".join(f"{name.replace('_', ' ')} {value!r}" for name, value in given.items())
    confirm_live(session, f"{{account}} gets {what}", yes=yes)
    changed = interruptible(None, lambda: session.client.accounts.change(session.account_id, **given))
    session.out.result(changed, f"{called(changed)} has {what}")


@command.command()
@click.argument("account", **_ACCOUNT)
@click.option("--reason", help="Kept with the account.")
@yes_option
@with_caller
def disable(account: str, reason: str | None, yes: bool) -> None:
    """Refuse every new order of an account until it is enabled.

    On a live account it asks for confirmation. `tip halt` does the same by a control, and cancels open orders.
    """
    session = session_of(account)
    confirm_live(session, "{account} refuses new orders", yes=yes)
    changed = interruptible(None, lambda: session.client.accounts.disable(session.account_id, reason=reason))
    session.out.result(changed, f"{called(changed)} is disabled" + (f": {reason}" if reason else ""))


@command.command()
@click.argument("account", **_ACCOUNT)
@yes_option
@with_caller
def enable(account: str, yes: bool) -> None:
    """Accept orders of an account again. For a live account it asks for confirmation."""
    session = session_of(account)
    confirm_live(session, "{account} accepts orders again", yes=yes)
    changed = interruptible(None, lambda: session.client.accounts.enable(session.account_id))
    session.out.result(changed, f"{called(changed)} is enabled")


@command.command()
@click.argument("account", **_ACCOUNT)
@click.option("--cancel-open", is_flag=True, help="Cancel its open orders; it is deleted when the last has ended.")
@yes_option
@with_caller
def delete(account: str, cancel_open: bool, yes: bool) -> None:
    """Delete an account with its credentials, for ever: save its statement before (`tip statement`).

    One with open orders is refused, unless --cancel-open cancels them. For a live account it asks for confirmation.
    """
    session = session_of(account)
    accounts, account_id = session.client.accounts, session.account_id
    confirm_live(session, "{account} is deleted with its credentials, for ever", yes=yes)
    interruptible(None, lambda: accounts.delete(account_id, cancel_open=cancel_open))
    is_gone = not (cancel_open and is_there(session.client, account_id))
    when = "is deleted" if is_gone else "refuses orders, and is deleted when the last of its orders has ended"
    session.out.result({"id": account_id, "deleted": is_gone}, f"account {short(account_id)} {when}")


def session_of(account: str | None) -> Session:
    """For a command that names its account by an argument."""
    return Session(click.get_current_context(), account)


def is_there(client: "Client", account_id: str) -> bool:
    from tip_client import NotFound

    try:
        return bool(client.accounts.read(account_id).id)
    except NotFound:
        return False


def called(account: "Account") -> str:
    return f"account {account.name!r} ({short(account.id)})"


def state_of(account: "Account") -> str:
    if account.closing:
        return "closing"
    return "disabled" if account.disabled else "enabled"


def account_row(account: "Account") -> tuple[str, ...]:
    where = (account.broker, str(account.environment))
    return (short(account.id), account.name, *where, state_of(account), account.time_zone)


def account_details(account: "Account") -> list[tuple[str, str]]:
    reason = f": {account.disabled_reason}" if account.disabled_reason else ""
    return [
        ("id", account.id),
        ("name", account.name),
        ("broker", account.broker),
        ("account there", text_of(account.broker_account_id)),
        ("environment", str(account.environment)),
        ("state", f"{state_of(account)}{reason}"),
        ("time zone", account.time_zone),
        ("organization", account.organization_id),
        ("created", clock(account.created_at)),
        ("changed", f"{clock(account.updated_at)}, version {account.version}"),
    ]
