"""Who may call what: every endpoint, every kind of caller, in the own organization and in another.

One line per endpoint and one column per caller. `own` is about a thing of the caller's organization (for service
accounts: of the organization in x-organization-id), `other` about the same thing of another organization.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from identity import model, usecases
from identity.app import create_app
from tip_testing.caller_matrix import Row, differences, template, uncovered
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .matrix_stage import ENDPOINTS, NO_PROBLEMS, SCOPES, Stage

CALLERS = (
    "none",
    "admin",
    "member",
    "read_only",
    "no_organization",
    "scoped",  # a service account with the scope, and with x-organization-id
    "unscoped",  # a service account with every scope but the ones of this endpoint
    "key_paper",
    "key_live",
    "key_read_only",
    "deleted_user",
    "disabled_organization_user",
    "disabled_service_account",
    "disabled_key",
    "expired_key",
    "disabled_organization_key",
)

# fmt: off
#                             none adm mem r/o noorg | sa  sa- | pap live r/o | del  orgoff saoff keyoff exp orgoffkey
MATRIX = """
validate                own    200 200 200 200 200     200 200   200 200  200    200  200    200   200    200 200
self                    own    401 200 200 200 200     200 200   200 200  200    401  200    401   401    401 401
by_provider             own    401 200 200 200 404     200 200   403 403  403    401  404    401   401    401 401
by_provider             other  401 404 404 404 404     200 200   403 403  403    401  404    401   401    401 401
by_unknown_provider     own    401 404 404 404 404     404 404   403 403  403    401  404    401   401    401 401
delete_me               own    401 204 204 204 401     401 401   401 401  401    401  401    401   401    401 401
get_me                  own    401 200 200 200 200     403 403   403 403  403    401  200    401   401    401 401
create_organization     own    401 403 403 403 403     201 403   403 403  403    401  403    401   401    401 401
list_organizations      own    401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_organization        own    401 200 200 200 403     200 403   403 403  403    401  403    401   401    401 401
get_organization        other  401 404 404 404 403     200 403   403 403  403    401  403    401   401    401 401
change_organization     own    401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
change_organization     other  401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
list_members            own    401 200 403 403 403     200 403   403 403  403    401  403    401   401    401 401
list_members            other  401 404 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_member              own    401 200 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_member              other  401 404 403 403 403     200 403   403 403  403    401  403    401   401    401 401
put_member              own    401 201 403 403 403     403 403   403 403  403    401  403    401   401    401 401
put_member              other  401 404 403 403 403     403 403   403 403  403    401  403    401   401    401 401
remove_member           own    401 204 403 403 403     403 403   403 403  403    401  403    401   401    401 401
remove_member           other  401 404 403 403 403     403 403   403 403  403    401  403    401   401    401 401
leave_organization      own    401 204 204 204 404     403 403   403 403  403    401  404    401   401    401 401
leave_organization      other  401 404 404 404 404     403 403   403 403  403    401  404    401   401    401 401
create_invitation       own    401 201 403 403 403     403 403   403 403  403    401  403    401   401    401 401
create_invitation       other  401 404 403 403 403     403 403   403 403  403    401  403    401   401    401 401
list_invitations        own    401 200 403 403 403     200 403   403 403  403    401  403    401   401    401 401
list_invitations        other  401 404 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_invitation          own    401 200 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_invitation          other  401 404 403 403 403     200 403   403 403  403    401  403    401   401    401 401
revoke_invitation       own    401 204 403 403 403     403 403   403 403  403    401  403    401   401    401 401
revoke_invitation       other  401 404 403 403 403     403 403   403 403  403    401  403    401   401    401 401
accept_invitation       own    401 404 404 404 404     403 403   403 403  403    401  404    401   401    401 401
list_audit_entries      own    401 200 403 403 403     200 403   403 403  403    401  403    401   401    401 401
list_audit_entries      other  401 404 403 403 403     200 403   403 403  403    401  403    401   401    401 401
export_audit_entries    own    401 200 403 403 403     200 403   403 403  403    401  403    401   401    401 401
export_audit_entries    other  401 404 403 403 403     200 403   403 403  403    401  403    401   401    401 401
create_key              own    401 201 403 403 403     201 403   403 403  403    401  403    401   401    401 401
list_keys               own    401 200 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_key                 own    401 200 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_key                 other  401 404 403 403 403     404 403   403 403  403    401  403    401   401    401 401
change_key              own    401 200 403 403 403     200 403   403 403  403    401  403    401   401    401 401
change_key              other  401 404 403 403 403     404 403   403 403  403    401  403    401   401    401 401
delete_key              own    401 204 403 403 403     204 403   403 403  403    401  403    401   401    401 401
delete_key              other  401 404 403 403 403     404 403   403 403  403    401  403    401   401    401 401
create_service_account  own    401 403 403 403 403     201 403   403 403  403    401  403    401   401    401 401
list_service_accounts   own    401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_service_account     own    401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
change_service_account  own    401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
rotate_secret           own    401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
delete_service_account  own    401 403 403 403 403     204 403   403 403  403    401  403    401   401    401 401
list_entitlements       own    401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
list_entitlements       other  401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_entitlement         own    401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
get_entitlement         other  401 403 403 403 403     200 403   403 403  403    401  403    401   401    401 401
put_entitlement         own    401 403 403 403 403     201 403   403 403  403    401  403    401   401    401 401
put_entitlement         other  401 403 403 403 403     201 403   403 403  403    401  403    401   401    401 401
remove_entitlement      own    401 403 403 403 403     204 403   403 403  403    401  403    401   401    401 401
remove_entitlement      other  401 403 403 403 403     204 403   403 403  403    401  403    401   401    401 401
jwks                    own    200 200 200 200 200     200 200   200 200  200    200  200    200   200    200 200
configuration           own    200 200 200 200 200     200 200   200 200  200    200  200    200   200    200 200
token                   own    200 400 400 400 400     400 400   200 200  200    400  400    400   200    200 200
metadata                own    200 200 200 200 200     200 200   200 200  200    200  200    200   200    200 200
ask_for_consent         own    400 400 400 400 400     400 400   400 400  400    400  400    400   400    400 400
consent                 own    400 400 400 400 400     400 400   400 400  400    400  400    400   400    400 400
begin_device            own    400 400 400 400 400     400 400   400 400  400    400  400    400   400    400 400
ask_for_device          own    200 200 200 200 200     200 200   200 200  200    200  200    200   200    200 200
revoke_token            own    400 400 400 400 400     400 400   400 400  400    400  400    400   400    400 400
"""
# fmt: on


def lines() -> Iterator[tuple[str, str, dict[str, int]]]:
    for line in MATRIX.strip().splitlines():
        endpoint, whose, *statuses = line.split()
        yield endpoint, whose, dict(zip(CALLERS, map(int, statuses), strict=True))


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity", TOKEN_RATE_LIMIT_PER_MINUTE="100000")).test_client()


@pytest.fixture(scope="module")
def stage(identity: IdentityFixtures) -> Stage:
    own, other, off = identity.organization(), identity.organization(), identity.organization()
    callers = {role: _bearer(own.tokens[role]) for role in ("admin", "member", "read_only")}
    callers |= {
        "none": {},
        "no_organization": _bearer(identity.user_without_organization()),
        "key_paper": {"x-api-key": own.api_keys["paper"]},
        "key_live": {"x-api-key": own.api_keys["live"]},
        "key_read_only": {"x-api-key": own.api_keys["paper_read_only"]},
        "deleted_user": _bearer(_deleted_user(identity, own)),
        "disabled_organization_user": _bearer(off.tokens["admin"]),
        "disabled_organization_key": {"x-api-key": off.api_keys["paper"]},
        "disabled_service_account": _bearer(_disabled_service_account(identity)),
        "disabled_key": {"x-api-key": _changed_key(identity, own, "disabled = true")},
        "expired_key": {"x-api-key": _changed_key(identity, own, "expires_at = now() - interval '1 second'")},
    }
    for scope in {*SCOPES.values(), "organization:write"}:
        needed = {scope, "intent:read"}  # the second one is not needed, only given away by some
        header = {"x-organization-id": str(own.id)}
        callers[f"scoped:{scope}"] = _bearer(identity.service_account(sorted(needed)).token) | header
        rest = [other for other in model.SCOPES if other != scope]
        callers[f"unscoped:{scope}"] = _bearer(identity.service_account(rest).token) | header
    usecases.change_organization(identity.deps, off.id, {"disabled": True})
    return Stage(identity, own, other, callers, identity.service_account(("intent:read",)))


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _deleted_user(identity: IdentityFixtures, organization: Organization) -> str:
    subject = _fresh_user(identity, organization, "admin")
    with identity.deps.engine.begin() as tx:
        tx.exec_driver_sql("UPDATE identity.app_user SET deleted_at = now() WHERE subject = %s", (subject[0],))
    return subject[1]


def _fresh_user(identity: IdentityFixtures, organization: Organization, role: str) -> tuple[str, str]:
    subject = f"user-{uuid4().hex[:12]}"
    record = model.Organization(
        organization.id, organization.external_id, "", identity.provider, False, datetime.now(UTC)
    )
    usecases.put_member(identity.deps, record, subject, role)
    return subject, identity.user_token(subject, organization.external_id, role)


def _disabled_service_account(identity: IdentityFixtures) -> str:
    account = identity.service_account()
    with identity.deps.engine.begin() as tx:
        tx.exec_driver_sql(
            "UPDATE identity.service_account SET disabled = true WHERE client_id = %s", (account.client_id,)
        )
    return account.token


def _changed_key(identity: IdentityFixtures, organization: Organization, change: str) -> str:
    expires_at = datetime.now(UTC) + timedelta(hours=1)
    record, key = usecases.create_key(
        identity.deps, organization.id, model.NewApiKey("changed", "paper", model.PERMISSIONS, expires_at)
    )
    with identity.deps.engine.begin() as tx:
        tx.exec_driver_sql(f"UPDATE identity.api_key SET {change} WHERE id = %s", (record.id,))
    return key


def headers_of(stage: Stage, endpoint: str, caller: str) -> dict[str, str]:
    if caller in ("scoped", "unscoped"):
        return stage.callers[f"{caller}:{SCOPES.get(endpoint, 'organization:write')}"]
    if endpoint in ("delete_me", "leave_organization") and caller in ("admin", "member", "read_only"):
        return _bearer(_fresh_user(stage.identity, stage.own, caller)[1])  # this one will be gone
    return stage.callers[caller]


def row(stage: Stage, endpoint: str, whose: str, expected: dict[str, int]) -> Row:
    """A line of the matrix, as it is tried on the stage."""
    method, path, _ = ENDPOINTS[endpoint](stage, whose)

    def request() -> dict[str, Any]:
        _, path, body = ENDPOINTS[endpoint](stage, whose)
        return {"path": path, **({"data": _proof(stage)} if endpoint == "token" else {"json": body})}

    return Row(method, path, expected, request, problems=endpoint not in NO_PROBLEMS)


def _proof(stage: Stage) -> dict[str, str]:
    """The client of a token request proves itself in the body; with a bearer token beside it that is two proofs."""
    client = {"client_id": stage.operator.client_id, "client_secret": stage.operator.client_secret}
    return {"grant_type": "client_credentials", **client}


@pytest.mark.parametrize("endpoint", sorted(ENDPOINTS))
def test_every_caller_gets_exactly_the_answer_of_the_matrix(client: FlaskClient, stage: Stage, endpoint: str) -> None:
    wrong = {
        whose: differences(client, partial(headers_of, stage, endpoint), row(stage, endpoint, whose, expected))
        for name, whose, expected in lines()
        if name == endpoint
    }

    assert wrong and not any(wrong.values()), wrong


def test_the_matrix_has_every_endpoint_there_is(client: FlaskClient, stage: Stage) -> None:
    adapter = client.application.url_map.bind("localhost")

    def endpoint_of(tried: Row) -> Row:
        rule, _ = adapter.match(tried.path, method=tried.method, return_rule=True)
        return replace(tried, path=template(rule.rule))

    rows = [endpoint_of(row(stage, name, "own", {})) for name in ENDPOINTS]

    assert uncovered(client.application, rows) == set()
    assert {endpoint for endpoint, *_ in lines()} == set(ENDPOINTS)


def test_what_is_foreign_looks_exactly_like_what_does_not_exist(client: FlaskClient, stage: Stage) -> None:
    admin = stage.callers["admin"]
    pairs = [
        (f"/v1/organizations/{stage.other.id}", f"/v1/organizations/{uuid4()}"),
        (f"/v1/organizations/{stage.other.id}/memberships", f"/v1/organizations/{uuid4()}/memberships"),
        (f"/v1/organizations/{stage.other.id}/audit-entries", f"/v1/organizations/{uuid4()}/audit-entries"),
        (
            f"/v1/organizations/{stage.other.id}/memberships/{stage.new_member('other')}",
            f"/v1/organizations/{stage.own.id}/memberships/there-is-none",
        ),
        (f"/v1/api-keys/{stage.new_key('other')}", f"/v1/api-keys/{uuid4()}"),
        (stage.by_provider("other"), "/v1/organizations/by-provider/local/there-is-none"),
    ]
    for foreign, unknown in pairs:
        answers = [client.get(path, headers=admin) for path in (foreign, unknown)]
        bodies = [{**answer.json, "instance": "", "request_id": ""} for answer in answers]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert bodies[0] == bodies[1]


def test_a_service_account_without_any_scope_looks_up_any_organization(client: FlaskClient, stage: Stage) -> None:
    account = stage.identity.service_account(())
    header = _bearer(account.token)

    assert client.get("/v1/auth/self", headers=header).json["scopes"] == []
    for whose in ("own", "other"):
        answer = client.get(stage.by_provider(whose), headers=header)
        assert (answer.status_code, answer.json.get("id")) == (200, str(stage.organization(whose).id))


@pytest.mark.parametrize("caller", ["admin", "member", "key_paper"])
def test_naming_another_organization_by_header_changes_nothing_for_users_and_keys(
    client: FlaskClient, stage: Stage, caller: str
) -> None:
    headers = stage.callers[caller] | {"x-organization-id": str(stage.other.id)}

    assert client.get("/v1/auth/self", headers=headers).json["organization_id"] == str(stage.own.id)


def test_a_refused_deletion_says_unauthorized_in_plain_text_to_everybody(client: FlaskClient, stage: Stage) -> None:
    for caller in ("none", "key_paper", "no_organization", "deleted_user", "disabled_service_account"):
        answer = client.delete("/v1/users/me", headers=stage.callers[caller])
        assert (answer.status_code, answer.get_data(as_text=True)) == (401, "unauthorized")
        assert answer.content_type == "text/plain; charset=utf-8"
