"""`tip doctor`"""

from collections.abc import Iterator

import click

from tip.doctor_checks import Check, attempt, configuration, connection_checks
from tip.doctor_local import local_checks
from tip.exits import REFUSED, UNREACHABLE
from tip.session import Session, with_session

MARKS = {"ok": "✓", "warning": "!", "failed": "✗"}


@click.command()
@with_session
def command(session: Session) -> None:
    """Check configuration, connections, clock, versions and migrations.

    What is not as it should be has a line that says what to do. Exit code 1 if something failed, 3 if the platform does
    not answer. Processes, database and migrations are checked where the platform runs on this machine.
    """
    checks: list[Check] = []
    for check in all_checks(session):
        checks.append(check)
        if not session.out.as_json:
            show(session, check)
    if session.out.as_json:
        session.out.document({"data": checks})
    failed = {check.name for check in checks if check.state == "failed"}
    if failed:
        raise SystemExit(UNREACHABLE if "platform" in failed else REFUSED)


def all_checks(session: Session) -> Iterator[Check]:
    """Where the configuration is wrong, nobody knows which platform the rest would be about."""
    configured = attempt("configuration", lambda: configuration(session))
    yield configured
    if configured.state != "failed":
        yield from connection_checks(session)
        yield from local_checks(session.settings.url)


def show(session: Session, check: Check) -> None:
    advice = f": {check.advice}" if check.advice else ""
    session.out.line(f"{check.text}{advice}", mark=MARKS[check.state])
