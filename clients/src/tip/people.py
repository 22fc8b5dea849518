"""`tip people`"""

from typing import TYPE_CHECKING

import click

from tip.confirm import confirm, yes_option
from tip.exits import WRONG_USAGE, Failure
from tip.lookup import find, not_empty
from tip.moments import clock
from tip.plain import short
from tip.secrets_input import read_secret
from tip.sending import interruptible
from tip.session import Session, with_session

if TYPE_CHECKING:
    from tip_client.models.identity import CreatedInvitation, Invitation, Member, Membership

TITLES = ("SUBJECT", "USER", "ROLE", "SINCE")
INVITATIONS = ("SUBJECT", "ROLE", "BY", "SINCE", "UNTIL", "ID")

_subject = click.argument("subject", callback=not_empty)
_role = click.argument("role", type=click.Choice(["admin", "member", "read_only"]))


@click.group(invoke_without_command=True)
@with_session
def command(session: Session) -> None:
    """List, invite and change the members of the organization.

    For its admins, but for `accept` and `leave`, which are about yourself. SUBJECT is the identity provider's id of a
    person; where people sign in at the platform itself, their e-mail address.
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


@command.command()
@_subject
@_role
@with_session
def invite(session: Session, subject: str, role: str) -> None:
    """Invite somebody: they become a member when they accept, and nobody before that.

    It prints the codes this once; hand them to the person. An earlier invitation of the same person ends.
    """
    organization_id = organization_of(session)
    made = interruptible(None, lambda: session.client.organizations.invite(organization_id, subject, role))
    show_invitation(session, made)


@command.command()
@with_session
def invitations(session: Session) -> None:
    """List the invitations that are open, without their codes."""
    found = session.client.organizations.invitations(organization_of(session))
    session.out.records(found, INVITATIONS, invitation_row, empty="no open invitations")


@command.command()
@click.argument("invitation", callback=not_empty)
@with_session
def uninvite(session: Session, invitation: str) -> None:
    """Take an invitation back; INVITATION is the subject, or the id."""
    organization_id = organization_of(session)
    listed = session.client.organizations.invitations(organization_id)
    found = find(listed, invitation, "invitation", lambda open_: open_.subject, where="tip people invitations")
    interruptible(None, lambda: session.client.organizations.revoke_invitation(organization_id, found.id))
    session.out.result({"id": found.id, "revoked": True}, f"the invitation of {found.subject} is taken back")


@command.command()
@with_session
def accept(session: Session) -> None:
    """Accept an invitation: become a member. The code is read from the terminal, or from standard input."""
    code = read_secret("Code of the invitation")
    joined = interruptible(None, lambda: session.client.me.accept_invitation(code))
    session.out.result(joined, f"you are {joined.role} of {joined.name}; `tip login` signs in for it")


@command.command()
@click.argument("organization", callback=not_empty)
@yes_option
@with_session
def leave(session: Session, organization: str, yes: bool) -> None:
    """End your own membership; ORGANIZATION is its name, or its id. It asks for confirmation."""
    found = my_membership(session, organization)
    if not yes:
        confirm(f"You are no member of {found.name} any more")
    interruptible(None, lambda: session.client.me.leave(found.organization_id))
    session.out.result({"organization_id": found.organization_id, "left": True}, f"you have left {found.name}")


def my_membership(session: Session, name: str) -> "Membership":
    mine = session.client.me.user().memberships
    found = [joined for joined in mine if name in (joined.name, joined.organization_id)]
    if len(found) != 1:
        there = ", ".join(f"{joined.name!r} {joined.organization_id}" for joined in mine)
        raise Failure(
            f"you are no member of {name!r}, or of several", WRONG_USAGE, hint=f"there are: {there or 'none'}"
        )
    return found[0]


def show_invitation(session: Session, made: "CreatedInvitation") -> None:
    """The codes alone are on standard output; what to do with them is for the person at the terminal."""
    if session.out.as_json:
        session.out.document(made)
        return
    click.echo(f"{made.subject} is invited as {made.role}, until {clock(made.expires_at)}; not shown again:", err=True)
    session.out.line(f"invitation    {made.code}")
    if made.one_time_code:
        session.out.line(f"one-time code {made.one_time_code}")
        click.echo("with the second one, who is new here sets a password, at /login/code", err=True)
    click.echo("to accept: `tip people accept`, or /login/invitation", err=True)


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


def invitation_row(invitation: "Invitation") -> tuple[str, ...]:
    about = (invitation.subject, str(invitation.role), invitation.invited_by)
    return (*about, clock(invitation.created_at), clock(invitation.expires_at), short(invitation.id))


def member_row(member: "Member") -> tuple[str, ...]:
    return (member.subject, short(member.user_id), str(member.role), clock(member.created_at))
