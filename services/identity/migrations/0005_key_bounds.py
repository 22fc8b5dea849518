"""Bounds of API keys, published to whoever identifies the callers of requests and streams."""

from alembic import op

from chassis.migrations import publish, publish_function, role, web_names

revision = "0005"
down_revision = "0004"

WEB = role("identity_web")
READERS = ("stream_gateway", "intents", "intents_web")
CALLERS = ("stream_gateway", *web_names())
COLUMNS = "k.id, k.prefix, k.key_digest, k.organization_id, k.environment, k.permissions, o.entitlements"
USABLE = """
    FROM identity.api_key k JOIN identity_api.organization o ON o.id = k.organization_id
    WHERE NOT k.disabled AND NOT o.disabled AND (k.expires_at IS NULL OR k.expires_at > now())
"""
USABLE_KEY = """
CREATE FUNCTION identity_api.usable_key(of_digest bytea)
RETURNS TABLE (id uuid, key_digest bytea, organization_id uuid, environment text, permissions text[],
               entitlements text[]{column})
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT k.id, k.key_digest, k.organization_id, k.environment, k.permissions, k.entitlements{value}
    FROM identity_api.usable_api_key k WHERE k.key_digest = of_digest;
END $$
"""


def upgrade() -> None:
    op.execute("ALTER TABLE identity.api_key ADD bounds jsonb")
    op.execute(f"GRANT UPDATE (bounds) ON identity.api_key TO {WEB}")
    op.execute(f"CREATE OR REPLACE VIEW identity_api.usable_api_key AS SELECT {COLUMNS}, k.bounds {USABLE}")
    op.execute(publish("identity_api.usable_api_key", *READERS))
    _replace_function(column=", bounds jsonb", value=", k.bounds")


def downgrade() -> None:
    op.execute("DROP FUNCTION identity_api.usable_key(bytea); DROP VIEW identity_api.usable_api_key")
    op.execute("ALTER TABLE identity.api_key DROP bounds")
    op.execute(f"CREATE VIEW identity_api.usable_api_key AS SELECT {COLUMNS} {USABLE}")
    op.execute(publish("identity_api.usable_api_key", *READERS))
    _replace_function()


def _replace_function(column: str = "", value: str = "") -> None:
    op.execute("DROP FUNCTION IF EXISTS identity_api.usable_key(bytea)")
    op.execute(USABLE_KEY.format(column=column, value=value))
    op.execute(publish_function("identity_api.usable_key(bytea)", *CALLERS))
