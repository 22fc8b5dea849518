"""What is read of the log: pages by keyset, so that depth costs nothing."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from intents import model
from intents.model import chain
from intents.model.actions import leaves
from intents.store.statement import Row, Statement, Transaction

_AS_STORED = (
    "id",
    "intent_id",
    "account_id",
    "organization_id",
    "environment",
    "type",
    "payload",
    "symbol",
    "order_side",
    "spec",
    "route_strategy",
    "ref_intent_id",
    "reason",
    "controls",
    "created_at",
    "sequence",
)
ACTION_COLUMNS = (*_AS_STORED, "actor_type", "actor_id", "previous_hash", "hash")
INTENT_COLUMNS = (
    "status",
    "filled_quantity",
    "quantity",
    "average_fill_price",
    "broker_order_id",
    "reason_code",
    "outcome",
    "updated_at",
    "group_id",
    "group_role",
)
_COLUMNS = ", ".join([*(f"a.{name}" for name in ACTION_COLUMNS), *(f"i.{name}" for name in INTENT_COLUMNS)])
_ACTION = f"""
SELECT {_COLUMNS} FROM intents.action a JOIN intents.intent i ON i.account_id = a.account_id AND i.id = a.intent_id
WHERE a.account_id = :account_id
"""  # noqa: S608 - only our own column names
# The actions of an intent are found by its id alone: by their account, all of its log would be read.
_OF_INTENT = f"SELECT {_COLUMNS} FROM intents.intent i JOIN intents.action a ON a.intent_id = i.id"  # noqa: S608
_PAGE = text(f"{_ACTION} AND a.sequence > :after ORDER BY a.sequence LIMIT :limit")
_BETWEEN = text(f"{_ACTION} AND a.sequence > :after AND a.sequence <= :until ORDER BY a.sequence")
_HISTORY = text(f"""{_OF_INTENT} WHERE i.account_id = :account_id AND i.id = :intent_id AND a.sequence > :after
    ORDER BY a.sequence LIMIT :limit""")
_LATEST = text(f"{_OF_INTENT} WHERE i.account_id = :account_id AND i.id = :intent_id ORDER BY a.sequence DESC LIMIT 1")
_LAST_CANCEL = Statement(
    "intents_last_cancel",
    ("uuid", "uuid"),
    f"{_OF_INTENT} WHERE i.account_id = $1 AND i.id = $2 AND a.type = 'CANCEL' ORDER BY a.sequence DESC LIMIT 1",
)
_BY_ID = Statement(
    "intents_by_id",
    ("uuid", "uuid", "uuid"),
    f"{_OF_INTENT} WHERE i.account_id = $1 AND i.id = $2 AND a.id = $3",
)
_STATEMENT_TIMEOUT = text("SELECT set_config('statement_timeout', :milliseconds, true)")
_ACCOUNT = text("SELECT id, organization_id, environment FROM accounts_api.account WHERE id = :account_id")
_ACCOUNTS = text("SELECT id FROM accounts_api.account WHERE organization_id = :organization_id")
_HEAD = text("SELECT last_sequence, last_hash FROM intents.account_head WHERE account_id = :account_id")
_EVENTS = text("""
    SELECT e.sequence, e.id, e.previous_hash, e.hash, intents.event_content(e) AS content FROM intents.account_event e
    WHERE e.account_id = :account_id AND e.sequence > :after AND e.sequence <= :until ORDER BY e.sequence
""")


def limit_statements(tx: Connection, milliseconds: int) -> None:
    """Until the transaction ends, no statement of it runs for longer."""
    tx.execute(_STATEMENT_TIMEOUT, {"milliseconds": str(milliseconds)})


def account(tx: Connection, account_id: UUID) -> model.Account | None:
    row = tx.execute(_ACCOUNT, {"account_id": account_id}).one_or_none()
    return model.Account(row.id, row.organization_id, row.environment) if row else None


def accounts_of(tx: Connection, organization_id: UUID) -> list[UUID]:
    return list(tx.execute(_ACCOUNTS, {"organization_id": organization_id}).scalars())


def page(tx: Connection, account_id: UUID, after: int, limit: int) -> list[model.Action]:
    """Actions of the account that follow a sequence, in order."""
    return _actions(tx, _PAGE, account_id=account_id, after=after, limit=limit)


def history(tx: Connection, account_id: UUID, intent_id: UUID, after: int, limit: int) -> list[model.Action]:
    return _actions(tx, _HISTORY, account_id=account_id, intent_id=intent_id, after=after, limit=limit)


def latest(tx: Connection, account_id: UUID, intent_id: UUID) -> model.Action | None:
    """The last action of an intent, or None if the account has no such intent."""
    return next(iter(_actions(tx, _LATEST, account_id=account_id, intent_id=intent_id)), None)


def last_cancel(tx: Transaction, account_id: UUID, intent_id: UUID) -> model.Action | None:
    """The last CANCEL of the intent; inside a transaction also one that the transaction itself has written."""
    return _first(tx.read(_LAST_CANCEL, (str(account_id), str(intent_id))))


def by_id(tx: Transaction, account_id: UUID, intent_id: UUID, action_id: UUID) -> model.Action | None:
    return _first(tx.read(_BY_ID, (str(account_id), str(intent_id), str(action_id))))


def _first(rows: Sequence[Row]) -> model.Action | None:
    return to_action(rows[0]._asdict()) if rows else None


def head(tx: Connection, account_id: UUID) -> tuple[int, bytes] | None:
    """The last sequence and hash of the account, None if nothing was ever written for it."""
    row = tx.execute(_HEAD, {"account_id": account_id}).one_or_none()
    return (row.last_sequence, bytes(row.last_hash)) if row else None


def entries(tx: Connection, account_id: UUID, after: int, until: int) -> list[chain.Entry]:
    """Of the log, actions and events alike, in order."""
    between = {"account_id": account_id, "after": after, "until": until}
    actions = [chain.action_entry(model.record(action)) for action in _actions(tx, _BETWEEN, **between)]
    events = [_event_entry(row) for row in tx.execute(_EVENTS, between)]
    return sorted([*actions, *events], key=attrgetter("sequence"))


def _event_entry(row: Row) -> chain.Entry:
    previous_hash, last_hash = bytes(row.previous_hash), bytes(row.hash)
    content = row.content.encode()
    return chain.Entry(row.sequence, str(row.id), previous_hash, last_hash, content, chained=bool(last_hash))


def _actions(tx: Connection, statement: Any, **values: Any) -> list[model.Action]:
    return [to_action(row) for row in tx.execute(statement, values).mappings()]


def to_action(row: Mapping[Any, Any]) -> model.Action:
    return model.Action(
        **{name: row[name] for name in _AS_STORED},
        actor=model.Actor(row["actor_type"], row["actor_id"]),
        state=model.State(
            row["status"],
            row["filled_quantity"],
            leaves(row["quantity"], row["filled_quantity"], row["status"], model.TERMINAL),
            row["average_fill_price"],
            row["broker_order_id"],
            row["reason_code"],
            row["outcome"],
            row["updated_at"],
            row["group_id"],
            row["group_role"],
        ),
        previous_hash=bytes(row["previous_hash"]),
        hash=bytes(row["hash"]),
    )
