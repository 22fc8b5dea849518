"""Commands and orders of which only a person can find out what became of them."""

from uuid import UUID

from sqlalchemy import Connection, text

from intents.execution.client_order_id import of_action_sql, of_key_sql
from intents.execution.model.commands import ORDER, UNWANTED, Unresolved
from intents.execution.model.verdicts import OPERATOR_REQUIRED
from intents.execution.store.expressions import ENDED_SQL
from intents.execution.store.pairs import SIBLINGS_SQL, pair_of
from intents.model.groups import LEADING_KIND
from intents.store.statuses import TERMINAL_SQL

_IS_ADOPTED = "(a.type = 'CREATE' AND i.broker_order_id IS NOT NULL)"
_UNRESOLVED = f"""
    SELECT i.account_id, i.id AS intent_id, coalesce(a.name, o.client_order_id) AS client_order_id,
           coalesce(a.type, '{ORDER}') AS type, i.status, i.reason_code, i.symbol, i.order_side,
           coalesce(a.spec, i.spec) AS spec, i.submit_started_at, o.credential, l.broker_account, i.broker_order_id,
           o.client_order_id AS order_name,
           CASE WHEN (p.pair ->> 'is_started')::boolean OR (p.pair ->> 'is_sent')::boolean
                THEN p.pair ->> 'client_order_id' END AS leader
    FROM intents.intent i
    LEFT JOIN LATERAL (
        SELECT {of_action_sql("id")} AS name, type, spec FROM intents.action a
        WHERE a.intent_id = i.id AND a.sequence > i.done_sequence
        ORDER BY a.sequence LIMIT 1) a ON i.open_actions > 0
    LEFT JOIN LATERAL (
        SELECT client_order_id, credential FROM intents.broker_order o
        WHERE o.intent_id = i.id
          AND (o.broker_order_id = i.broker_order_id OR o.client_order_id = a.name)
        ORDER BY coalesce(o.client_order_id = a.name AND NOT {_IS_ADOPTED}, false) DESC,
                 o.broker_order_id = i.broker_order_id DESC NULLS LAST LIMIT 1) o ON true
    CROSS JOIN LATERAL (
        SELECT CASE WHEN a.type = 'CREATE' AND i.group_role IN ({SIBLINGS_SQL}) AND i.spec -> '{LEADING_KIND}' IS NULL
                         AND NOT {_IS_ADOPTED} THEN {pair_of("i")} END AS pair) p
    LEFT JOIN intents.broker_login l ON l.account_id = i.account_id AND l.credential = o.credential
    WHERE (i.open_actions > 0 AND i.outcome = 'unknown') OR i.reason_code = '{OPERATOR_REQUIRED}'
"""  # noqa: S608 - a constant
# Orders that no intent asks for and that have not been seen to end: the system cancels them where it can.
_UNWANTED = f"""
    SELECT i.account_id, i.id AS intent_id, o.client_order_id, '{UNWANTED}' AS type, i.status, i.reason_code, i.symbol,
           i.order_side, i.spec, NULL::timestamptz AS submit_started_at, o.credential, l.broker_account,
           o.broker_order_id, {of_key_sql("o.client_order_id")} AS order_name, NULL::text AS leader
    FROM intents.broker_order o
    JOIN intents.intent i ON i.account_id = o.account_id AND i.id = o.intent_id
    LEFT JOIN intents.broker_login l ON l.account_id = o.account_id AND l.credential = o.credential
    WHERE o.broker_order_id IS NOT NULL AND (o.unwanted_since IS NOT NULL OR i.status IN ({TERMINAL_SQL}))
      AND o.status NOT IN ({ENDED_SQL})
"""  # noqa: S608 - a constant
_LIST = text(f"{_UNRESOLVED} UNION ALL {_UNWANTED}")

_INTENT_OF = text("""
    SELECT intent_id FROM intents.broker_order WHERE account_id = :account_id AND client_order_id = :client_order_id
""")
_BROKER = text("SELECT broker FROM accounts_api.account WHERE id = :account_id")


def unresolved_commands(tx: Connection) -> list[Unresolved]:
    """Commands whose outcome is not known, and open orders that their intents do not ask for."""
    return [Unresolved(**row) for row in tx.execute(_LIST).mappings()]


def intent_of_order(tx: Connection, account_id: UUID, client_order_id: str) -> UUID | None:
    """The intent whose order is known under this name; None if none is."""
    values = {"account_id": account_id, "client_order_id": client_order_id}
    intent_id: UUID | None = tx.execute(_INTENT_OF, values).scalar()
    return intent_id


def broker_of_account(tx: Connection, account_id: UUID) -> str | None:
    """None if the account was deleted."""
    broker: str | None = tx.execute(_BROKER, {"account_id": account_id}).scalar()
    return broker
