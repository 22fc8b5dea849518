"""identity over HTTP: one module per noun."""

from identity import model, model_login
from identity.routes import (
    api_keys,
    audit_entries,
    callers,
    discovery,
    entitlements,
    invitations,
    login,
    memberships,
    oauth,
    organizations,
    service_accounts,
    tokens,
    users,
)

BLUEPRINTS = (
    callers.bp,
    organizations.bp,
    memberships.bp,
    invitations.bp,
    entitlements.bp,
    users.bp,
    audit_entries.bp,
    api_keys.bp,
    service_accounts.bp,
    tokens.bp,
    oauth.bp,
    login.bp,
    discovery.bp,
)

STATUSES: dict[type[Exception], int] = {
    model.UnknownKey: 401,
    model.UserDeleted: 401,
    model.GrantTooWide: 403,
    model.NotFound: 404,
    model_login.LoginElsewhere: 404,
    model.OrganizationExists: 409,
    model.LastAdmin: 409,
    model_login.LoginExists: 409,
    model.MemberExists: 409,
    model.LimitReached: 409,
    model.ProviderUnavailable: 503,
    model.DeletionUnconfirmed: 503,
}
