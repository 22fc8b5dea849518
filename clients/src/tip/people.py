"""`tip people`"""

from typing import TYPE_CHECKING

import click

from tip.confirm import confirm, yes_option
from tip.exits import Failure
from tip.lookup import not_empty
from tip.moments import clock
from tip.plain import short
from tip.sending import interruptible
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.identity import Member

TITLES = ("SUBJECT", "USER", "ROLE", "SINCE")

_subject = click.argument("subject", callback=not_empty)
_role = click.argument("role", type=click.Choice(["admin", "member", "read_only"]))


@click.group(invoke_without_command=True)
@with_session
def command(session: Session) -> None:
    """List the members of the organization, and change who they are.

    For its admins. SUBJECT is the identity provider's id of a person.
    """
    if not click.get_current_context().invoked_subcommand:
        list_people(session)


@command.command("list")
@with_session
def list_command(session: Session) -> None:
    """List the members of the organization with their roles."""
    list_people(session)


def list_people(session: Session) -> None:
    members = session.client.organizations.members(organization_of(session))
    session.out.records(members, TITLES, member_row, empty="no members")


@command.command()
@_subject
@_role
@with_session
def add(session: Session, subject: str, role: str) -> None:
    """Make somebody a member of the organization."""
    put(session, subject, role)


@command.command()
@_subject
@_role
@with_session
def role(session: Session, subject: str, role: str) -> None:
    """Change the role of a member."""
    session.client.organizations.member(organization_of(session), subject)
    put(session, subject, role)


@command.command()
@_subject
@yes_option
@with_session
def remove(session: Session, subject: str, yes: bool) -> None:
    """Take somebody's membership away: whatever they do is refused from then on. It asks for confirmation."""
    if not yes:
        confirm(f"{subject} is no member of the organization any more")
    organization_id = organization_of(session)
    interruptible(None, lambda: session.client.organizations.remove_member(organization_id, subject))
    session.out.result({"subject": subject, "removed": True}, f"{subject} is no member any more")


def put(session: Session, subject: str, role: str) -> None:
    organization_id = organization_of(session)
    member = interruptible(None, lambda: session.client.organizations.put_member(organization_id, subject, role))
    session.out.result(member, f"{member.subject} is {member.role}")


def organization_of(session: Session) -> str:
    """The one that the caller belongs to."""
    found = session.settings.organization or session.client.me.read().organization_id
    if found is None:
        raise Failure("the caller belongs to no organization", hint="--profile chooses another credential")
    return found


def member_row(member: "Member") -> tuple[str, ...]:
    return (member.subject, short(member.user_id), str(member.role), clock(member.created_at))
