"""Postgres as a second wall: what a query of the web process forgets, row-level security remembers."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import ProgrammingError

from chassis import tenancy
from chassis.principals import Kind, Principal, Role
from identity import model, usecases
from identity.store import api_keys
from tip_testing.forgetting import forgetting
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform


def an_organization(identity: IdentityFixtures) -> Organization:
    """With a row in every table."""
    made = identity.organization(entitlements=["trading_live"])
    admin = Principal(Kind.USER, identity.subject(made.external_id, "admin"), made.id, role=Role.ADMIN)
    usecases.create_invitation(identity.deps, admin, made.id, "guest", "member")
    return made


@pytest.fixture
def ours(identity: IdentityFixtures) -> Organization:
    return an_organization(identity)


@pytest.fixture
def theirs(identity: IdentityFixtures) -> Organization:
    return an_organization(identity)


@pytest.fixture
def engine(client: FlaskClient) -> Engine:
    """The web process's own."""
    found: Engine = client.application.extensions["deps"].engine
    return found


@contextmanager
def without_row_level_security(platform: Platform, table: str) -> Iterator[None]:
    with platform.admin() as connection:
        connection.execute(text(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"))
        try:
            yield
        finally:
            connection.execute(text(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"))


def listed(client: FlaskClient, path: str, of: Organization, name: str) -> set[str]:
    answer = client.get(path, headers={"Authorization": f"Bearer {of.tokens['admin']}"})
    assert answer.status_code == 200, answer.text
    return {listed[name] for listed in answer.get_json()["data"]}


def test_a_list_of_keys_that_forgets_the_organization_shows_nothing_of_another(
    platform: Platform, client: FlaskClient, engine: Engine, ours: Organization, theirs: Organization
) -> None:
    own = listed(client, "/v1/api-keys?limit=200", ours, "id")
    with forgetting(engine, "identity.api_key.organization_id = %(organization_id_1)s::UUID") as forgotten:
        seen = listed(client, "/v1/api-keys?limit=200", ours, "id")
        with without_row_level_security(platform, "identity.api_key"):
            leaked = listed(client, "/v1/api-keys?limit=200", ours, "id")

    assert forgotten and seen == own
    assert leaked > own  # so it was row-level security that kept it


def test_a_list_of_members_that_forgets_the_organization_shows_nothing_of_another(
    platform: Platform, client: FlaskClient, engine: Engine, ours: Organization, theirs: Organization
) -> None:
    path = f"/v1/organizations/{ours.id}/memberships?limit=200"
    own = listed(client, path, ours, "subject")
    with forgetting(engine, "identity.membership.organization_id = %(organization_id_1)s::UUID") as forgotten:
        seen = listed(client, path, ours, "subject")
        with without_row_level_security(platform, "identity.membership"):
            leaked = listed(client, path, ours, "subject")

    assert forgotten and seen == own
    assert leaked > own


def test_a_validation_that_forgets_which_key_reads_nothing_of_another_organization(
    platform: Platform,
    client: FlaskClient,
    engine: Engine,
    ours: Organization,
    theirs: Organization,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: set[UUID] = set()
    with_prefix = api_keys.with_prefix

    def recorded(tx: Connection, prefix: str) -> list[tuple[bytes, model.ApiKey, bool]]:
        found = with_prefix(tx, prefix)
        read.update(key.organization_id for _, key, _ in found)
        return found

    def organizations_read() -> set[UUID]:
        read.clear()
        answer = client.post("/api/v1/auth/api-key/validate", json={"api_key": ours.api_keys["paper"]})
        assert (answer.status_code, answer.get_json()["organization_id"]) == (200, str(ours.id))
        return read & {ours.id, theirs.id}

    monkeypatch.setattr(api_keys, "with_prefix", recorded)
    with forgetting(engine, "identity.api_key.prefix = %(prefix_1)s") as forgotten:
        seen = organizations_read()
        with (
            without_row_level_security(platform, "identity.api_key"),
            without_row_level_security(platform, "identity.organization"),
        ):
            leaked = organizations_read()

    assert forgotten and seen == {ours.id}
    assert leaked == {ours.id, theirs.id}


@pytest.mark.parametrize("table", ["organization", "membership", "entitlement", "api_key", "audit_entry", "invitation"])
def test_the_web_process_sees_rows_of_whom_it_serves_and_of_nobody_else(
    engine: Engine, ours: Organization, theirs: Organization, table: str
) -> None:
    key = "id" if table == "organization" else "organization_id"
    found = text(f"SELECT DISTINCT {key} FROM identity.{table}")
    with tenancy.serving([ours.id]), engine.connect() as tx:
        served = set(tx.execute(found).scalars())
    with tenancy.serving([]), engine.connect() as tx:
        nobody = set(tx.execute(found).scalars())
    with tenancy.serving_all(), engine.connect() as tx:
        operator = set(tx.execute(found).scalars())

    assert (served, nobody) == ({ours.id}, set())
    assert operator >= {ours.id, theirs.id}


def test_the_web_process_writes_nothing_of_whom_it_does_not_serve(
    engine: Engine, ours: Organization, theirs: Organization
) -> None:
    grant = text("INSERT INTO identity.entitlement (organization_id, name) VALUES (:id, 'controls_premium')")
    take = text("DELETE FROM identity.api_key WHERE organization_id = :id")
    for served in ([ours.id], []):
        with tenancy.serving(served):
            with engine.begin() as tx:
                assert tx.execute(take, {"id": theirs.id}).rowcount == 0
            with engine.begin() as tx, pytest.raises(ProgrammingError, match="row-level security"):
                tx.execute(grant, {"id": theirs.id})


def test_an_operator_sees_all_organizations_and_a_user_only_their_own(
    client: FlaskClient, identity: IdentityFixtures, ours: Organization, theirs: Organization
) -> None:
    token = identity.service_account(["organization:read"]).token

    def status(bearer: str, organization: Organization) -> int:
        path = f"/v1/organizations/{organization.id}"
        return client.get(path, headers={"Authorization": f"Bearer {bearer}"}).status_code

    assert [status(token, organization) for organization in (ours, theirs)] == [200, 200]
    assert [status(ours.tokens["admin"], organization) for organization in (ours, theirs)] == [200, 404]
