"""Postgres as a second wall: what a query of the web process forgets, row-level security remembers."""

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError

from chassis import tenancy
from tip_testing.accounts_caller import Caller, bearer
from tip_testing.forgetting import forgetting
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform


@pytest.fixture
def engine(client: FlaskClient) -> Engine:
    """The web process's own."""
    found: Engine = client.application.extensions["deps"].engine
    return found


@pytest.fixture
def stranger(client: FlaskClient, identity: IdentityFixtures) -> Caller:
    """An admin of another organization, which has an account and a credential."""
    caller = Caller(client, bearer(identity.organization().tokens["admin"]))
    caller.credential(caller.account(name="Theirs")["id"])
    return caller


def names(caller: Caller) -> set[str]:
    answer = caller.get("/v1/accounts")
    assert answer.status_code == 200
    return {account["name"] for account in answer.get_json()["data"]}


def test_a_list_that_forgets_the_organization_shows_nothing_of_another(
    platform: Platform, engine: Engine, admin: Caller, stranger: Caller
) -> None:
    admin.account(name="Ours")
    with forgetting(engine, "accounts.account.organization_id = %(organization_id_1)s::UUID") as forgotten:
        seen = names(admin)
        with platform.admin() as connection:
            connection.execute(text("ALTER TABLE accounts.account DISABLE ROW LEVEL SECURITY"))
            try:
                leaked = names(admin)
            finally:
                connection.execute(text("ALTER TABLE accounts.account ENABLE ROW LEVEL SECURITY"))

    assert forgotten
    assert seen == {"Ours"}
    assert "Theirs" in leaked  # so it was row-level security that kept it


def test_a_change_that_forgets_which_account_changes_nothing_of_another_organization(
    platform: Platform, engine: Engine, admin: Caller, stranger: Caller
) -> None:
    account = admin.account(name="Ours")
    with forgetting(engine, "WHERE accounts.account.id = %(id_1)s::UUID RETURNING", "RETURNING") as forgotten:
        answer = admin.call("PATCH", f"/v1/accounts/{account['id']}", json={"name": "Renamed"})

    assert forgotten and answer.status_code == 200
    assert names(stranger) == {"Theirs"}


@pytest.mark.parametrize("table", ["account", "credential", "sealed_secret"])
def test_the_web_process_sees_rows_of_whom_it_serves_and_of_nobody_else(
    engine: Engine, admin: Caller, stranger: Caller, organization: Organization, table: str
) -> None:
    admin.credential(admin.account()["id"])
    key = {"sealed_secret": "credential_id"}.get(table, "id")
    count = text(f"SELECT count({key}) FROM accounts.{table}")
    seen = []
    for served in ([organization.id], []):
        with tenancy.serving(served), engine.connect() as tx:
            seen.append(tx.execute(count).scalar_one())

    assert seen == [1, 0]


@pytest.mark.parametrize(
    "columns", ["accounts.vault_object", "accounts.sealed_secret", "accounts.outbox"], ids=lambda name: name
)
def test_the_web_process_reads_no_secret_and_no_event(engine: Engine, columns: str) -> None:
    with engine.connect() as tx, pytest.raises(ProgrammingError, match="permission denied"):
        tx.execute(text(f"SELECT * FROM {columns}"))


def test_the_web_process_reads_outbox_rows_only_for_operators(
    engine: Engine, admin: Caller, organization: Organization
) -> None:
    admin.account()
    count = text("SELECT count(payload) FROM accounts.outbox")
    seen = []
    for served in (tenancy.serving([organization.id]), tenancy.serving([]), tenancy.serving_all()):
        with served, engine.connect() as tx:
            seen.append(tx.execute(count).scalar_one() > 0)

    assert seen == [False, False, True]


def test_the_web_process_queues_nothing_about_whom_it_does_not_serve(
    engine: Engine, organization: Organization
) -> None:
    new = text(
        "INSERT INTO accounts.outbox (event_id, event_type, payload, redriven_from) "
        "VALUES (gen_random_uuid(), 'account.created', jsonb_build_object('organization_id', gen_random_uuid()), 1)"
    )
    for served in ([organization.id], []):
        with tenancy.serving(served), engine.begin() as tx, pytest.raises(ProgrammingError, match="row-level security"):
            tx.execute(new)


def test_the_web_process_writes_nothing_of_whom_it_does_not_serve(
    engine: Engine, organization: Organization, stranger: Caller
) -> None:
    new = text(
        "INSERT INTO accounts.account (id, organization_id, name, broker, environment) "
        "VALUES (gen_random_uuid(), gen_random_uuid(), 'x', 'paper', 'paper')"
    )
    rename = text("UPDATE accounts.account SET name = 'x'")
    for served in ([organization.id], []):
        with tenancy.serving(served):
            with engine.begin() as tx:
                assert tx.execute(rename).rowcount == 0
            with engine.begin() as tx, pytest.raises(ProgrammingError, match="row-level security"):
                tx.execute(new)

    assert names(stranger) == {"Theirs"}
