"""The views other services read, as the contract they are: columns, who may read, what a row means."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import ProgrammingError

from chassis import db, keys, migrations
from chassis.services import ROLES
from identity import usecases
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

COLUMNS = {
    "organization": {
        "id": "uuid",
        "provider": "text",
        "external_id": "text",
        "name": "text",
        "disabled": "boolean",
        "entitlements": "ARRAY",
    },
    "usable_api_key": {
        "id": "uuid",
        "prefix": "text",
        "key_digest": "bytea",
        "organization_id": "uuid",
        "environment": "text",
        "permissions": "ARRAY",
        "entitlements": "ARRAY",
        "bounds": "jsonb",
    },
    "app_user": {"id": "uuid", "provider": "text", "subject": "text", "deleted": "boolean"},
    "membership": {"organization_id": "uuid", "user_id": "uuid", "role": "text"},
    "service_account": {"client_id": "text", "scopes": "ARRAY", "disabled": "boolean"},
    "signing_key": {"kid": "text", "algorithm": "text", "public_jwk": "jsonb"},
    "feed": {
        "position": "bigint",
        "event_id": "uuid",
        "event_type": "text",
        "payload": "jsonb",
        "traceparent": "text",
        "settled_at": "timestamp with time zone",
    },
}


@pytest.fixture
def reader(platform: Platform) -> Iterator[Connection]:
    """A connection with no more rights than the stream gateway has."""
    engine = create_engine(db.with_driver(platform.database_url("stream_gateway")), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def organization(identity: IdentityFixtures) -> Organization:
    return identity.organization(entitlements=["trading_live"])


def fetch_one(reader: Connection, query: str, **values: Any) -> Any:
    return reader.execute(text(query), values).one()


def test_the_views_have_exactly_the_promised_columns(platform: Platform) -> None:
    query = (
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'identity_api'"
    )
    found: dict[str, dict[str, str]] = {}
    with platform.admin() as connection:
        for row in connection.execute(text(query)):
            found.setdefault(row.table_name, {})[row.column_name] = row.data_type

    assert found == COLUMNS


@pytest.mark.parametrize("role", ROLES)
def test_nobody_changes_anything_through_the_views(platform: Platform, role: str) -> None:
    with platform.admin() as connection:
        for view in COLUMNS:
            changeable = connection.execute(
                text("SELECT has_table_privilege(:role, :view, 'INSERT, UPDATE, DELETE')"),
                {"role": migrations.role(role), "view": f"identity_api.{view}"},
            ).scalar_one()
            assert not changeable, view


@pytest.mark.parametrize("name", migrations.web_names())
def test_a_web_process_reads_no_list_of_callers(platform: Platform, name: str) -> None:
    """It finds its own caller by functions that answer only whoever can name one."""
    readable = text("SELECT has_table_privilege(:role, 'identity_api.' || :view, 'SELECT')")
    with platform.admin() as connection:
        views = {
            view
            for view in COLUMNS
            if connection.execute(readable, {"role": migrations.role(name), "view": view}).scalar_one()
        }

    # intents reads keys with all else that a submit needs, after saying whose they are.
    assert views == ({"signing_key", "usable_api_key"} if name == "intents_web" else {"signing_key"})


def test_nothing_behind_the_views_can_be_read(reader: Connection) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"):
        reader.execute(text("SELECT secret_digest FROM identity.service_account"))


def test_a_key_is_found_by_its_prefix_with_all_a_decision_needs(reader: Connection, organization: Organization) -> None:
    key = organization.api_keys["live"]

    row = fetch_one(reader, "SELECT * FROM identity_api.usable_api_key WHERE prefix = :prefix", prefix=keys.prefix(key))

    assert bytes(row.key_digest) == keys.digest(key)
    assert (row.organization_id, row.environment, row.entitlements) == (organization.id, "live", ["trading_live"])
    assert "intent:edit" in row.permissions


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE identity.api_key SET disabled = true WHERE organization_id = :id",
        "UPDATE identity.api_key SET expires_at = now() WHERE organization_id = :id",
        "UPDATE identity.organization SET disabled = true WHERE id = :id",
    ],
    ids=["disabled", "expired", "organization_disabled"],
)
def test_a_key_that_is_not_usable_is_not_shown(
    reader: Connection, platform: Platform, organization: Organization, change: str
) -> None:
    shown = text("SELECT count(*) FROM identity_api.usable_api_key WHERE organization_id = :id")
    before = reader.execute(shown, {"id": organization.id}).scalar_one()

    with platform.admin() as connection:
        connection.execute(text(change), {"id": organization.id})

    assert before > 0
    assert reader.execute(shown, {"id": organization.id}).scalar_one() == 0


def test_only_entitlements_that_have_not_ended_are_entitlements(
    reader: Connection, identity: IdentityFixtures, platform: Platform, organization: Organization
) -> None:
    query = "SELECT entitlements FROM identity_api.organization WHERE provider = 'local' AND external_id = :id"
    usecases.put_entitlement(identity.deps, organization.id, "controls_premium")
    assert sorted(fetch_one(reader, query, id=organization.external_id).entitlements) == [
        "controls_premium",
        "trading_live",
    ]

    with platform.admin() as connection:
        connection.execute(text("UPDATE identity.entitlement SET expires_at = now() WHERE name = 'trading_live'"))

    assert fetch_one(reader, query, id=organization.external_id).entitlements == ["controls_premium"]


def test_a_membership_taken_away_and_a_deleted_user_stay_known_as_such(
    reader: Connection, identity: IdentityFixtures, platform: Platform, organization: Organization
) -> None:
    subject = identity.subject(organization.external_id, "member")
    query = """
        SELECT u.deleted, m.role FROM identity_api.app_user u JOIN identity_api.membership m ON m.user_id = u.id
        WHERE u.provider = 'local' AND u.subject = :subject AND m.organization_id = :id
    """
    assert fetch_one(reader, query, subject=subject, id=organization.id) == (False, "member")

    with platform.admin() as connection:
        connection.execute(
            text("UPDATE identity.membership SET removed_at = now() WHERE organization_id = :id"),
            {"id": organization.id},
        )
        connection.execute(text("UPDATE identity.app_user SET deleted_at = now() WHERE subject = :s"), {"s": subject})

    assert fetch_one(reader, query, subject=subject, id=organization.id) == (True, None)


def test_a_service_account_is_shown_without_anything_to_guess_from(
    reader: Connection, identity: IdentityFixtures
) -> None:
    account = identity.service_account(["intent:read"])

    row = fetch_one(reader, "SELECT * FROM identity_api.service_account WHERE client_id = :id", id=account.client_id)

    assert row == (account.client_id, ["intent:read"], False)


def test_only_public_halves_of_accepted_signing_keys_are_shown(
    reader: Connection, identity: IdentityFixtures, platform: Platform
) -> None:
    identity.user_token("somebody")
    row = fetch_one(reader, "SELECT * FROM identity_api.signing_key")
    assert set(row.public_jwk) == {"alg", "kty", "n", "e", "kid", "use"}

    with platform.admin() as connection:
        connection.execute(text("UPDATE identity.signing_key SET retired_at = now()"))

    assert reader.execute(text("SELECT * FROM identity_api.signing_key")).all() == []
