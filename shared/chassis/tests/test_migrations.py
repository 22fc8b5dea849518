"""Every service's migrations: they build what the code expects, and can be taken back."""

from importlib import import_module

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from chassis import migrations
from tip_testing.platform_plugin import Platform

WITH_TABLES = [service for service in migrations.services() if migrations.scripts(service)]


@pytest.mark.parametrize("service", WITH_TABLES)
def test_migrations_build_exactly_the_tables_the_store_declares(platform: Platform, service: str) -> None:
    metadata = import_module(f"{service}.store").METADATA
    with platform.admin() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_schemas": True,
                "include_name": lambda name, kind, _: kind != "schema" or name == service,
                "include_object": lambda _o, name, kind, *_: not (kind == "table" and name == "schema_version"),
                "compare_type": True,
                "compare_server_default": True,
                "version_table_schema": service,
                "version_table": "schema_version",
            },
        )
        differences = compare_metadata(context, metadata)

    assert differences == []


@pytest.mark.parametrize("service", WITH_TABLES)
def test_migrations_can_be_taken_back_and_applied_again(fresh_platform: Platform, service: str) -> None:
    migrations.downgrade(fresh_platform.admin_url, service)
    assert _tables(fresh_platform, service) == {"schema_version"}

    migrations.migrate(fresh_platform.admin_url, {})
    assert "outbox" in _tables(fresh_platform, service)


@pytest.mark.parametrize("service", WITH_TABLES)
@pytest.mark.parametrize("other", WITH_TABLES)
def test_a_service_cannot_touch_another_services_tables(platform: Platform, service: str, other: str) -> None:
    with platform.admin() as connection:
        usable = connection.execute(
            text("SELECT has_schema_privilege(:role, :schema, 'USAGE')"),
            {"role": migrations.role(service), "schema": other},
        ).scalar_one()

    assert usable is (service == other)


def _tables(platform: Platform, schema: str) -> set[str]:
    with platform.admin() as connection:
        found = connection.execute(
            text("SELECT table_name FROM information_schema.tables WHERE table_schema = :schema"), {"schema": schema}
        )
        return set(found.scalars())
