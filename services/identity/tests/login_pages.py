"""People of identity's own who can sign in."""

import secrets

from identity import usecases
from identity.usecases import passwords
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import Person


def person(identity: IdentityFixtures, organization: Organization, role: str = "member") -> Person:
    """A new member with a one-time code."""
    email = f"{secrets.token_hex(6)}@example.org"
    return join(identity, organization, email, role)


def join(identity: IdentityFixtures, organization: Organization, email: str, role: str = "member") -> Person:
    usecases.change_member(identity.deps, None, organization.id, email, role)
    with identity.deps.engine.begin() as tx:
        return Person(email, passwords.issue_one_time_code(identity.deps, tx, email))
