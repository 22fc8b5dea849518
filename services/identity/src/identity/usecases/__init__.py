"""What identity does: one function per use case, one transaction each; one module per noun."""

from identity.usecases.api_keys import (
    change_key,
    create_key,
    delete_key,
    get_key,
    list_keys,
    record_key_uses,
    validate_key,
)
from identity.usecases.audit_log import export_audit_entries, list_audit_entries
from identity.usecases.deletion import delete_user, finish_deletions
from identity.usecases.deps import Deps
from identity.usecases.organizations import (
    change_organization,
    create_organization,
    get_entitlement,
    get_organization,
    get_organization_by_provider,
    list_entitlements,
    list_organizations,
    put_entitlement,
    remove_entitlement,
)
from identity.usecases.people import (
    change_member,
    get_member,
    list_members,
    list_memberships,
    put_member,
    put_user,
    remove_member,
)
from identity.usecases.service_accounts import (
    change_service_account,
    create_service_account,
    delete_service_account,
    get_service_account,
    list_service_accounts,
    rotate_secret,
)
from identity.usecases.tokens import (
    grant_token,
    issue_token,
    public_keys,
    reseal_signing_keys,
    retire_signing_keys,
    rotate_signing_keys,
)

__all__ = [
    "Deps",
    "change_key",
    "change_member",
    "change_organization",
    "change_service_account",
    "create_key",
    "create_organization",
    "create_service_account",
    "delete_key",
    "delete_service_account",
    "delete_user",
    "export_audit_entries",
    "finish_deletions",
    "get_entitlement",
    "get_key",
    "get_member",
    "get_organization",
    "get_organization_by_provider",
    "get_service_account",
    "grant_token",
    "issue_token",
    "list_audit_entries",
    "list_entitlements",
    "list_keys",
    "list_members",
    "list_memberships",
    "list_organizations",
    "list_service_accounts",
    "public_keys",
    "put_entitlement",
    "put_member",
    "put_user",
    "record_key_uses",
    "remove_entitlement",
    "remove_member",
    "reseal_signing_keys",
    "retire_signing_keys",
    "rotate_secret",
    "rotate_signing_keys",
    "validate_key",
]
