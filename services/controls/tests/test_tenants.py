"""Postgres as a second wall: what a query of the web process forgets, row-level security remembers."""

from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError

from chassis import tenancy
from controls import store
from tip_testing.forgetting import forgetting
from tip_testing.identity_fixtures import Organization

from .conftest import Controls, Setting


@pytest.fixture
def engine(setting: Setting) -> Engine:
    """The web process's own."""
    found: Engine = setting.client.application.extensions["deps"].engine
    return found


@pytest.fixture
def stranger(setting: Setting) -> Controls:
    """An admin of another organization, whose account has a control."""
    other = setting.identity.organization(entitlements=["controls_premium"])
    theirs = setting.controls(other, setting.account(other))
    assert theirs.symbol("PUT", "THEIRS", body={"manually_disabled": True}).status_code == 201
    return theirs


def symbols(controls: Controls) -> set[str]:
    answer = controls.call("GET", "/symbols")
    assert answer.status_code == 200
    return {control["symbol"] for control in answer.get_json()["data"]}


def test_a_list_that_forgets_the_account_shows_nothing_of_another_organization(
    setting: Setting, engine: Engine, controls: Controls, stranger: Controls
) -> None:
    controls.symbol("PUT", "OURS", body={"manually_disabled": True})
    with forgetting(engine, "controls.symbol_manual.account_id = %(account_id_1)s::UUID") as forgotten:
        seen = symbols(controls)
        with setting.platform.admin() as connection:
            connection.execute(text("ALTER TABLE controls.symbol_manual DISABLE ROW LEVEL SECURITY"))
            try:
                leaked = symbols(controls)
            finally:
                connection.execute(text("ALTER TABLE controls.symbol_manual ENABLE ROW LEVEL SECURITY"))

    assert forgotten
    assert seen == {"OURS"}
    assert "THEIRS" in leaked  # so it was row-level security that kept it


@pytest.mark.parametrize("table", [table.name for table in store.TABLES.values()])
def test_without_an_organization_nothing_is_seen_and_nothing_written(
    setting: Setting, engine: Engine, controls: Controls, organization: Organization, table: str
) -> None:
    values: dict[str, Any] = {"id": organization.id, "account_id": controls.account_id}
    columns = {column.name for column in store.METADATA.tables[f"controls.{table}"].c}
    given = {"organization_id": ":id", "account_id": ":account_id", "symbol": "'X'"}
    given |= {"trading_state": "'HALTED'", "manually_disabled": "true"}
    given = {name: value for name, value in given.items() if name in columns}
    new = text(f"INSERT INTO controls.{table} ({', '.join(given)}) VALUES ({', '.join(given.values())})")
    count = text(f"SELECT count(*) FROM controls.{table} WHERE organization_id = :id")

    with tenancy.serving([]), engine.begin() as tx, pytest.raises(ProgrammingError, match="row-level security"):
        tx.execute(new, values)
    with tenancy.serving([organization.id]), engine.begin() as tx:
        tx.execute(new, values)
        served = tx.execute(count, values).scalar_one()
    with tenancy.serving([]), engine.connect() as tx:
        unserved = tx.execute(count, values).scalar_one()
    with setting.platform.admin() as connection:
        connection.execute(text(f"DELETE FROM controls.{table} WHERE organization_id = :id"), values)

    assert (served > 0, unserved) == (True, 0)
