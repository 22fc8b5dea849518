"""The statements that append to the log: each writes an action with its intent, idempotency key and outbox row."""

from intents.model.events import INTENT_SUBMITTED
from intents.model.groups import WAITING_FOR_PARENT, WAITING_FOR_SIBLING
from intents.store.account_head import extend_chain
from intents.store.backlog import LANE
from intents.store.facts import KEPT_HOURS
from intents.store.key_budgets import COLUMNS, is_within_budget, take_budget
from intents.store.order_totals import add_to_totals, open_quantity
from intents.store.statement import Statement

_GIVEN = f"""
    SELECT * FROM json_to_recordset($1) AS given (
        account_id uuid, organization_id uuid, environment text, intent_id uuid, action_id uuid, event_id uuid,
        type text, payload json, symbol text, order_side text, spec json, route_strategy text,
        ref_intent_id uuid, actor_type text, actor_id text, reason text, controls json, traceparent text,
        request_id text, from_status text, to_status text, intent_created_at timestamptz, created_at timestamptz,
        quantity numeric, replace_quantity numeric, version bigint, digest bytea, key text, request_hash bytea,
        state jsonb, client_id text, tags text[], read_sequence bigint, extended_hours boolean, group_id uuid,
        group_role text, reason_code text, uncounted boolean, {COLUMNS})
"""  # noqa: S608 - only our own words
# A key that was used within its time gives no row, and without a row nothing else is written.
_UNLESS_USED = f"""
    ON CONFLICT (account_id, key) DO UPDATE SET request_hash = excluded.request_hash, intent_id = excluded.intent_id,
        action_id = excluded.action_id, state = excluded.state, created_at = excluded.created_at,
        created = excluded.created
        WHERE existing.created_at <= excluded.created_at - interval '{KEPT_HOURS} hours'
    RETURNING account_id, key
"""
_TAKE_KEYS = f"""
    INSERT INTO intents.idempotency AS existing (account_id, organization_id, key, request_hash, intent_id, action_id,
                                                state, created_at)
    SELECT account_id, organization_id, key, request_hash, intent_id, action_id, state, created_at
    FROM given WHERE key IS NOT NULL ORDER BY account_id, key
    {_UNLESS_USED}
"""  # noqa: S608 - only our own words
KEYS = Statement("intents_keys", ("json",), f"WITH given AS MATERIALIZED ({_GIVEN}) {_TAKE_KEYS}")
_ADMITTED = """
    SELECT given.* FROM given LEFT JOIN taken USING (account_id, key) WHERE given.key IS NULL OR taken.key IS NOT NULL
"""
_OUTBOX = f"""
    INSERT INTO intents.outbox (event_id, event_type, payload, traceparent)
    SELECT event_id, '{INTENT_SUBMITTED}', jsonb_build_object(
        'event_id', event_id, 'event_type', '{INTENT_SUBMITTED}', 'occurred_at', created_at,
        'organization_id', organization_id, 'account_id', account_id, 'intent_id', intent_id, 'action_id', action_id),
        traceparent
    FROM admitted
"""  # noqa: S608 - a constant
_ACTION = """
    INSERT INTO intents.action (
        account_id, sequence, id, organization_id, environment, intent_id, type, payload, symbol, order_side, spec,
        route_strategy, ref_intent_id, actor_type, actor_id, reason, controls, from_status, to_status,
        intent_created_at, traceparent, request_id, previous_hash, hash, created_at, account_orders, symbol_orders)
    SELECT account_id, last_sequence, action_id, organization_id, environment, intent_id, type, payload, symbol,
           order_side, spec, route_strategy, ref_intent_id, actor_type, actor_id, reason, controls, from_status,
           to_status, intent_created_at, traceparent, request_id, previous_hash, last_hash, created_at,
           (SELECT orders FROM counted WHERE counted.account_id = admitted.account_id AND counted.symbol = ''),
           (SELECT orders FROM counted
            WHERE counted.account_id = admitted.account_id AND counted.symbol = admitted.symbol)
    FROM admitted JOIN head USING (account_id)
    RETURNING id, sequence, previous_hash, hash
"""
_OPENED = """
    SELECT account_id, organization_id, symbol, order_side, 1 AS orders, 1 AS opened,
           CASE WHEN uncounted THEN 0 ELSE quantity END AS quantity
    FROM admitted JOIN head USING (account_id)
"""
# What waits for its parent, or is sent with its sibling, has no action that is open to executors until it is armed.
_INTENT = f"""
    INSERT INTO intents.intent (
        account_id, id, organization_id, environment, lane, symbol, order_side, route_strategy, spec, quantity, status,
        created_at, updated_at, next_attempt_at, client_id, tags, extended_hours, budget_key_id, budget_day_ends_at,
        budget_notional, budget_quantity, group_id, group_role, reason_code, uncounted, open_actions)
    SELECT account_id, intent_id, organization_id, environment,
           coalesce((SELECT {LANE} FROM accounts_api.account a WHERE a.id = keyed.account_id), ''),
           symbol, order_side, route_strategy, spec, quantity, to_status,
           created_at, created_at, created_at, client_id, coalesce(tags, '{{}}'), coalesce(extended_hours, false),
           budget_key, budget_day_ends_at, budget_notional, budget_quantity, group_id, group_role, reason_code,
           coalesce(uncounted, false),
           CASE WHEN reason_code IN ('{WAITING_FOR_PARENT}', '{WAITING_FOR_SIBLING}') THEN 0 ELSE 1 END
    FROM keyed WHERE (SELECT count(*) FROM locked) >= 0 ORDER BY account_id
    ON CONFLICT (account_id, client_id) WHERE client_id IS NOT NULL DO NOTHING
    RETURNING account_id, id AS intent_id
"""  # noqa: S608 - a constant
_TAGS = """
    INSERT INTO intents.intent_tag (account_id, organization_id, tag, created_at, intent_id)
    SELECT account_id, organization_id, tag, created_at, intent_id FROM admitted, unnest(tags) tag
"""
# What was decided by an account's orders is written only if its log still ends where it did. For that its head is
# locked first, and all others of the batch with it, in order: without a row in `given` nothing is written, not even
# the idempotency key. So it is where a key's budget does not suffice, of which a statement has at most one.
_UNMOVED = f"""
    submitted AS MATERIALIZED ({_GIVEN}), seen AS MATERIALIZED (
        SELECT account_id, last_sequence FROM intents.account_head
        WHERE account_id IN (SELECT account_id FROM submitted)
          AND EXISTS (SELECT FROM submitted WHERE read_sequence IS NOT NULL)
        ORDER BY account_id FOR UPDATE
    ), unmoved AS MATERIALIZED (
        SELECT submitted.* FROM submitted LEFT JOIN seen USING (account_id)
        WHERE read_sequence IS NULL OR read_sequence = last_sequence
    ), budgeted AS ({take_budget("unmoved")}), given AS MATERIALIZED (
        SELECT unmoved.* FROM unmoved WHERE {is_within_budget("unmoved", "budgeted")}
    )
"""  # noqa: S608 - only our own words
# A client_id that another intent has taken meanwhile gives no intent, and without an intent nothing else is written but
# the idempotency key, which then says the same (`model.decision`). Where there is a client_id the head is locked first:
# whoever waited for another's client_id, holding the head that the other needs, would deadlock.
CREATE = Statement(
    "intents_create",
    ("json",),
    f"""
    WITH {_UNMOVED}, taken AS ({_TAKE_KEYS}), keyed AS MATERIALIZED ({_ADMITTED}),
    locked AS MATERIALIZED (
        SELECT account_id FROM intents.account_head
        WHERE account_id IN (SELECT account_id FROM keyed WHERE client_id IS NOT NULL) ORDER BY account_id FOR UPDATE
    ), made AS ({_INTENT}),
    admitted AS MATERIALIZED (SELECT keyed.* FROM keyed JOIN made USING (account_id, intent_id)),
    head AS ({extend_chain("admitted")}), counted AS ({add_to_totals(_OPENED)}), tagged AS ({_TAGS}),
    queued AS ({_OUTBOX})
    {_ACTION}
    """,  # noqa: S608 - only our own words
)
_AMENDED = """
    SELECT account_id, organization_id, symbol, order_side, CASE type WHEN 'REPLACE' THEN 1 ELSE 0 END AS orders,
           0 AS opened, added AS quantity
    FROM admitted JOIN head USING (account_id) JOIN changed USING (account_id, intent_id)
"""
# What another key, or another day, has taken for the intent stays taken there.
_IS_SAME_BUDGET = "i.budget_key_id = new.budget_key AND i.budget_day_ends_at = new.budget_day_ends_at"
_AMENDED_BUDGET = f"""
            budget_key_id = coalesce(new.budget_key, i.budget_key_id),
            budget_day_ends_at = coalesce(new.budget_day_ends_at, i.budget_day_ends_at),
            budget_notional = CASE WHEN new.budget_key IS NULL THEN i.budget_notional
                WHEN {_IS_SAME_BUDGET} THEN i.budget_notional + new.budget_notional ELSE new.budget_notional END,
            budget_quantity = CASE WHEN new.budget_key IS NULL THEN i.budget_quantity
                WHEN {_IS_SAME_BUDGET} THEN greatest(i.budget_quantity, new.budget_quantity)
                ELSE new.budget_quantity END"""
# What waits has its CREATE open with the first command that follows it.
# It does not wait for the intent's row: holding the idempotency key, it would block whoever has locked the row and
# needs the same key. A writer that finds the row locked waits for it holding nothing (`locking`).
AMEND = Statement(
    "intents_amend",
    ("json",),
    f"""
    WITH given AS MATERIALIZED ({_GIVEN}), budgeted AS ({take_budget("given")}), taken AS ({_TAKE_KEYS}),
    as_expected AS MATERIALIZED (
        SELECT new.*, {open_quantity("i")} AS open_before FROM ({_ADMITTED}) new
        JOIN intents.intent i ON i.account_id = new.account_id AND i.id = new.intent_id AND i.version = new.version
        WHERE {is_within_budget("new", "budgeted")} FOR UPDATE OF i SKIP LOCKED
    ), changed AS (
        UPDATE intents.intent i
        SET status = to_status, version = i.version + 1, updated_at = new.created_at,
            open_actions = CASE WHEN i.open_actions = 0 AND i.done_sequence = 0 THEN 2 ELSE i.open_actions + 1 END,
            next_attempt_at = least(next_attempt_at, new.created_at),
            replace_quantity = coalesce(new.replace_quantity, i.replace_quantity), {_AMENDED_BUDGET}
        FROM as_expected new WHERE i.account_id = new.account_id AND i.id = new.intent_id
        RETURNING i.account_id, i.id AS intent_id, {open_quantity("i")} - new.open_before AS added
    ), admitted AS MATERIALIZED (SELECT given.* FROM given JOIN changed USING (account_id, intent_id)),
    head AS ({extend_chain("admitted")}), counted AS ({add_to_totals(_AMENDED)}), queued AS ({_OUTBOX})
    {_ACTION}
    """,  # noqa: S608 - only our own words
)
REMEMBER = Statement(
    "intents_remember",
    ("uuid", "uuid", "text", "bytea", "uuid", "uuid", "jsonb", "timestamptz"),
    f"""
    INSERT INTO intents.idempotency AS existing (account_id, organization_id, key, request_hash, intent_id, action_id,
                                                state, created_at, created)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, false)
    {_UNLESS_USED}
    """,  # noqa: S608 - only our own words
)
INSERT_GROUP = Statement(
    "intents_insert_group",
    ("uuid", "uuid", "uuid", "text", "numeric", "timestamptz", "boolean"),
    """
    INSERT INTO intents.intent_group (account_id, id, organization_id, kind, quantity, created_at, paired)
    VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id
    """,
)
