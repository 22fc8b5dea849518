"""The first organization, its admin and an operator, on an installation that has none. Safe to repeat."""

import re

from chassis import db
from identity import model, model_login
from identity.store import organizations, people, service_accounts
from identity.usecases.deps import Deps
from identity.usecases.organizations import create_organization
from identity.usecases.passwords import has_password, issue_one_time_code
from identity.usecases.people import change_member
from identity.usecases.service_accounts import create_service_account

OPERATOR = "operator"
_MOST_ACCOUNTS = 1_000


def start_installation(deps: Deps, name: str, admin: str) -> model_login.Started:
    """What is there stays as it is. An admin without a password gets a new one-time code in place of the old."""
    if deps.provider.vouches:
        raise model_login.LoginElsewhere
    subject = model_login.subject_of(admin)
    organization, organization_made = _organization(deps, name)
    admin_made = _ensure_admin(deps, organization, subject)
    client_id, secret = _operator(deps)
    with deps.engine.begin() as tx:
        code = None if has_password(deps, tx, subject) else issue_one_time_code(deps, tx, subject)
    return model_login.Started(organization.id, organization_made, admin_made, code, client_id, secret)


def _organization(deps: Deps, name: str) -> tuple[model.Organization, bool]:
    external_id = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "organization"
    with db.reading(deps.engine) as tx:
        found = organizations.find_by_external_id(tx, deps.provider.name, external_id)
    if found:
        return found, False
    return create_organization(deps, deps.provider.name, external_id, name), True


def _ensure_admin(deps: Deps, organization: model.Organization, subject: str) -> bool:
    with db.reading(deps.engine) as tx:
        found = people.member(tx, organization.id, subject)
    if found and found.role == model.ADMIN:
        return False
    change_member(deps, None, organization.id, subject, model.ADMIN)
    return True


def _operator(deps: Deps) -> tuple[str, str | None]:
    """The service account that runs the platform, and its secret if it is new."""
    with db.reading(deps.engine) as tx:
        found = [known for known in service_accounts.page(tx, None, _MOST_ACCOUNTS) if known.name == OPERATOR]
    if found:
        return found[0].client_id, None
    account, secret = create_service_account(deps, OPERATOR, model.SCOPES)
    return account.client_id, secret
