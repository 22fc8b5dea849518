"""Order groups: legs are intents that know their group and role; what is wrong with a group is kept beside them."""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish, role

revision = "0018"
down_revision = "0017"

TERMINAL = "'FILLED', 'CANCELED', 'REJECTED', 'DENIED', 'EXPIRED', 'FAILED'"
OPEN_QUANTITY = """greatest(0, greatest(quantity, CASE WHEN status IN ('PENDING_REPLACE', 'PENDING_CANCEL')
    THEN replace_quantity END) - filled_quantity)"""
READERS = ("intents", "intents_web", "controls_web")
WEB = role("intents_web")
UPGRADE = f"""
ALTER TABLE intents.intent
    ADD group_id uuid,
    ADD group_role text,
    ADD armed_at timestamptz,
    ADD uncounted boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT intent_group_role_check CHECK (group_role IN
        ('entry', 'take_profit', 'stop_loss', 'one', 'other', 'parent', 'child', 'flatten'));
CREATE INDEX intent_group_idx ON intents.intent (account_id, group_id, id) WHERE group_id IS NOT NULL;
CREATE TABLE intents.intent_group (
    account_id         uuid NOT NULL,
    id                 uuid NOT NULL,
    organization_id    uuid NOT NULL,
    kind               text NOT NULL CONSTRAINT intent_group_kind_check
                       CHECK (kind IN ('Bracket', 'OneCancelsOther', 'OneTriggersOther')),
    quantity           numeric NOT NULL,
    excess_quantity    numeric NOT NULL DEFAULT 0,
    flatten_quantity   numeric NOT NULL DEFAULT 0,
    flattened_quantity numeric NOT NULL DEFAULT 0,
    canceling          boolean NOT NULL DEFAULT false,
    created_at         timestamptz NOT NULL,
    CONSTRAINT intent_group_pkey PRIMARY KEY (account_id, id)
);
CREATE INDEX intent_group_open_idx ON intents.intent_group (account_id, id)
    WHERE canceling OR flatten_quantity > flattened_quantity;
GRANT SELECT, INSERT ON intents.intent_group TO {WEB};
REVOKE DELETE ON intents.intent_group FROM {role("intents")};
"""
VIEW = """
CREATE OR REPLACE VIEW intents_api.open_intent AS
    SELECT account_id, id, symbol, order_side, filled_quantity, {quantity} AS open_quantity
    FROM intents.intent WHERE status NOT IN ({terminal})
"""


def upgrade() -> None:
    op.execute(UPGRADE)
    op.execute(tenancy.protect("intents.intent_group"))
    counted = f"CASE WHEN uncounted THEN 0 ELSE {OPEN_QUANTITY} END"
    _view(counted)


def _view(quantity: str) -> None:
    op.execute(VIEW.format(quantity=quantity, terminal=TERMINAL))
    op.execute(publish("intents_api.open_intent", *READERS))


def downgrade() -> None:
    _view(OPEN_QUANTITY)
    op.execute("DROP TABLE intents.intent_group")
    op.execute("ALTER TABLE intents.intent DROP group_id, DROP group_role, DROP armed_at, DROP uncounted")
