"""Alembic's entry point, the same for every service: the connection and the schema come from `chassis.migrations`."""

from alembic import context

_config = context.config
_schema = _config.attributes["schema"]

context.configure(
    connection=_config.attributes["connection"],
    version_table="schema_version",
    version_table_schema=_schema,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
