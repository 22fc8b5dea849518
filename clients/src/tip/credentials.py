"""`tip credentials`"""

from collections.abc import Callable
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from tip.broker_secrets import broker_of, read_secret
from tip.confirm import confirm_live, yes_option
from tip.exits import REFUSED
from tip.lookup import find, not_empty
from tip.moments import clock
from tip.plain import short
from tip.sending import accepted, interruptible
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.accounts import Credential

F = TypeVar("F", bound=Callable[..., Any])

TITLES = ("ID", "LABEL", "BROKER", "STATUS", "FINGERPRINT", "VERSION", "CHANGED")
WAIT_S = 30.0
POLL_S = 0.2


def _secret_options(function: F) -> F:
    for option in reversed(
        (
            click.option(
                "--file", type=click.File("r"), help="A JSON file with the parts of the secret; - is standard input."
            ),
            click.option("--wait", is_flag=True, help="Wait until the broker has accepted or refused it."),
            click.option(
                "--timeout", type=click.FloatRange(min=0), default=WAIT_S, show_default=True, help="Seconds to wait."
            ),
        )
    ):
        function = option(function)
    return function


@click.group(invoke_without_command=True)
@with_session
def command(session: Session) -> None:
    """List, add, test, rotate and delete an account's broker credentials.

    A secret is typed at the terminal without being shown, or comes from standard input or a file as one JSON object:
    not from the command line, where others can read it. It is never shown again. ID may be a label, or how an id
    begins.
    """
    if not click.get_current_context().invoked_subcommand:
        list_credentials(session)


@command.command("list")
@with_session
def list_command(session: Session) -> None:
    """List credentials with what the broker has said of each, without their secrets."""
    list_credentials(session)


def list_credentials(session: Session) -> None:
    found = session.account_client.credentials.list()
    session.out.records(found, TITLES, credential_row, right=("VERSION",), empty="no credentials")


@command.command()
@click.argument("label", callback=not_empty)
@_secret_options
@with_session
def add(session: Session, label: str, file: IO[str] | None, wait: bool, timeout: float) -> None:
    """Add a credential, which the broker then accepts or refuses.

    With --wait exit code 1 means that the broker refused it.
    """
    account = session.client.accounts.read(session.account_id)
    secret = read_secret(broker_of(session, account.broker), file)
    made = interruptible(None, lambda: session.account_client.credentials.add(label, secret))
    settle(session, made, "is stored", timeout if wait else None)


@command.command()
@click.argument("credential_id", metavar="ID", callback=not_empty)
@_secret_options
@yes_option
@with_session
def rotate(
    session: Session, credential_id: str, file: IO[str] | None, wait: bool, timeout: float, yes: bool
) -> None:  # fmt: skip
    """Put another secret in place of a credential's former one.

    On a live account it asks for confirmation. With --wait exit code 1 means that the broker refused it.
    """
    former = credential_of(session, credential_id)
    confirm_live(session, f"The secret of {called(former)} of {{account}} is replaced", yes=yes)
    secret = read_secret(broker_of(session, former.broker), file)
    made = interruptible(None, lambda: session.account_client.credentials.rotate(former.id, secret))
    settle(session, made, "has another secret", timeout if wait else None)


@command.command("test")
@click.argument("credential_id", metavar="ID", callback=not_empty)
@click.option("--wait", is_flag=True, help="Wait until the broker has accepted or refused it.")
@click.option("--timeout", type=click.FloatRange(min=0), default=WAIT_S, show_default=True, help="Seconds to wait.")
@with_session
def request_test(session: Session, credential_id: str, wait: bool, timeout: float) -> None:
    """Have the broker tried with a credential as it is stored. It stays in use meanwhile.

    With --wait exit code 1 means that the broker refused it, or could not be tried.
    """
    found = credential_of(session, credential_id)
    begun = session.account_client.credentials.test(found.id)
    ended = tested(session, begun, timeout) if wait else begun
    outcome = ended.test_status or ended.status
    is_bad = outcome in ("refused", "failed", "invalid")
    session.out.result(ended, f"the test of {called(ended)}: {outcome}", mark="✗" if is_bad else "✓")
    if wait and is_bad:
        raise SystemExit(REFUSED)


@command.command()
@click.argument("credential_id", metavar="ID", callback=not_empty)
@yes_option
@with_session
def delete(session: Session, credential_id: str, yes: bool) -> None:
    """Delete a credential with its secret. On a live account it asks for confirmation."""
    found = credential_of(session, credential_id)
    confirm_live(session, f"{called(found)} of {{account}} is deleted", yes=yes)
    interruptible(None, lambda: session.account_client.credentials.delete(found.id))
    session.out.result({"id": found.id, "deleted": True}, f"{called(found)} is deleted")


def settle(session: Session, credential: "Credential", what: str, timeout: float | None) -> None:
    """Print it, with a timeout once the broker has said something of it; one that it refused is a failure."""
    hint = "do not repeat it: `tip credentials` shows its status"
    with accepted(f"{called(credential)} {what}", hint, None, credential_id=credential.id):
        found = credential if timeout is None else judged(session, credential, timeout)
        is_bad = found.status == "invalid"
        session.out.result(found, f"{called(found)} {what}: {found.status}", mark="✗" if is_bad else "✓")
    if timeout is not None and is_bad:
        raise SystemExit(REFUSED)


def judged(session: Session, credential: "Credential", timeout: float) -> "Credential":
    return once_not(session, credential, timeout, lambda found: found.status == "pending")


def tested(session: Session, credential: "Credential", timeout: float) -> "Credential":
    return once_not(session, credential, timeout, lambda found: "pending" in (found.status, found.test_status))


def once_not(
    session: Session, credential: "Credential", timeout: float, waits: Callable[["Credential"], bool]
) -> "Credential":
    """The credential as soon as it waits for its broker no more."""
    from tip_client import Timeout

    deadline = monotonic() + timeout
    while waits(credential):
        if monotonic() > deadline:
            raise Timeout(f"The broker has not said yet whether it accepts {called(credential)}.")
        sleep(POLL_S)
        credential = session.account_client.credentials.read(credential.id)
    return credential


def credential_of(session: Session, text: str) -> "Credential":
    return find(session.account_client.credentials.list(), text, "credential", lambda credential: credential.label)


def called(credential: "Credential") -> str:
    return f"credential {credential.label!r} ({short(credential.id)})"


def credential_row(credential: "Credential") -> tuple[str, ...]:
    said = (str(credential.status), credential.fingerprint, str(credential.version))
    return (short(credential.id), credential.label, credential.broker, *said, clock(credential.updated_at))
