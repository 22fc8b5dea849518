"""Order groups: what was filled of them beyond what they were for, and legs that the others have left nothing for."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

from intents.execution.model.groups import Excess
from intents.execution.store.system_actions import NOT_CANCELED_LATELY
from intents.model.groups import EXITS
from intents.store.order_totals import open_quantity
from intents.store.statement import Statement, Transaction
from intents.store.statuses import TERMINAL_SQL

_EXITS_SQL = ", ".join(f"'{role}'" for role in sorted(EXITS))
_OPEN_EXIT = f"""i.account_id = g.account_id AND i.group_id = g.id AND i.group_role IN ({_EXITS_SQL})
      AND i.status NOT IN ({TERMINAL_SQL})"""
# Whether it is to be flattened is decided once, by what the account says at that moment.
_SAVE_EXCESS = Statement(
    "execution_save_excess",
    ("uuid", "uuid", "numeric"),
    """
    UPDATE intents.intent_group SET excess_quantity = greatest(excess_quantity, $3),
        flatten_quantity = flatten_quantity + CASE
            WHEN (SELECT flatten_excess FROM accounts_api.account_setting WHERE id = $1)
            THEN greatest(0, $3 - excess_quantity) ELSE 0 END
    WHERE account_id = $1 AND id = $2 RETURNING id
    """,
)
_BEGIN_CANCELING = Statement(
    "execution_begin_canceling",
    ("uuid", "uuid"),
    "UPDATE intents.intent_group SET canceling = true WHERE account_id = $1 AND id = $2 RETURNING id",
)
_COUNTED_SIBLINGS = Statement(
    "execution_counted_siblings",
    ("uuid", "uuid", "uuid"),
    f"""
    SELECT coalesce(sum({open_quantity("i")}), 0) AS quantity FROM intents.intent i
    WHERE i.account_id = $1 AND i.group_id = $2 AND i.id <> $3 AND i.group_role IN ({_EXITS_SQL})
    """,  # noqa: S608 - a constant
)
_LOCK_EXCESS = Statement(
    "execution_lock_excess",
    ("uuid", "uuid"),
    """
    SELECT flatten_quantity - flattened_quantity AS quantity FROM intents.intent_group
    WHERE account_id = $1 AND id = $2 FOR UPDATE
    """,
)
_SAVE_FLATTENED = Statement(
    "execution_save_flattened",
    ("uuid", "uuid", "numeric"),
    """
    UPDATE intents.intent_group SET flattened_quantity = flattened_quantity + $3
    WHERE account_id = $1 AND id = $2 RETURNING id
    """,
)
# Their CANCEL was rejected by the broker, or could not be written.
_LEFT_OVER = text(f"""
    SELECT g.account_id, i.id AS intent_id
    FROM intents.intent_group g
    JOIN accounts_api.account ON account.id = g.account_id
    JOIN intents.intent i ON {_OPEN_EXIT}
    WHERE g.canceling AND i.status <> 'PENDING_CANCEL' AND {NOT_CANCELED_LATELY}
    LIMIT :limit
""")  # noqa: S608 - a constant
_CANCELED = text(f"""
    UPDATE intents.intent_group g SET canceling = false
    WHERE g.canceling AND NOT EXISTS (SELECT FROM intents.intent i WHERE {_OPEN_EXIT})
""")  # noqa: S608 - a constant
_UNFLATTENED = text(f"""
    SELECT g.account_id, g.organization_id, g.id AS group_id, i.symbol, i.order_side, i.route_strategy
    FROM intents.intent_group g
    JOIN accounts_api.account ON account.id = g.account_id
    CROSS JOIN LATERAL (
        SELECT symbol, order_side, route_strategy FROM intents.intent i
        WHERE i.account_id = g.account_id AND i.group_id = g.id AND i.group_role IN ({_EXITS_SQL}) LIMIT 1
    ) i
    WHERE g.flatten_quantity > g.flattened_quantity
    LIMIT :limit
""")  # noqa: S608 - a constant
_ANY = text("SELECT 1 FROM intents.intent_group WHERE canceling OR flatten_quantity > flattened_quantity LIMIT 1")


class LeftOver(NamedTuple):
    account_id: UUID
    intent_id: UUID


class Unflattened(NamedTuple):
    """A group that has filled too much; symbol and side are those of the orders that did."""

    account_id: UUID
    organization_id: UUID
    group_id: UUID
    symbol: str
    order_side: str
    route_strategy: str


def save_excess(tx: Transaction, excess: Excess) -> None:
    tx.write(_SAVE_EXCESS, (str(excess.account_id), str(excess.group_id), excess.quantity))


def begin_canceling(tx: Transaction, account_id: UUID, group_id: UUID) -> None:
    """From here on the group is looked after until none of its exits is open."""
    tx.write(_BEGIN_CANCELING, (str(account_id), str(group_id)))


def counted_siblings(tx: Transaction, account_id: UUID, group_id: UUID, intent_id: UUID) -> Decimal:
    """How much limits count as open of the exits of the group other than this one."""
    [row] = tx.read(_COUNTED_SIBLINGS, (str(account_id), str(group_id), str(intent_id)))
    quantity: Decimal = row.quantity
    return quantity


def lock_excess(tx: Transaction, found: Unflattened) -> Decimal:
    """How much of the group is still to be flattened; nobody else flattens it until the transaction ends."""
    [row] = tx.write(_LOCK_EXCESS, (str(found.account_id), str(found.group_id)))
    quantity: Decimal = row.quantity
    return quantity


def save_flattened(tx: Transaction, found: Unflattened, quantity: Decimal) -> None:
    tx.write(_SAVE_FLATTENED, (str(found.account_id), str(found.group_id), quantity))


def groups_to_tend(tx: Connection) -> Sequence[Any]:
    return tx.execute(_ANY).all()


def left_over(tx: Connection, limit: int) -> list[LeftOver]:
    """Open legs of groups for which the others have left nothing, and that nobody is canceling."""
    return [LeftOver(**row) for row in tx.execute(_LEFT_OVER, {"limit": limit}).mappings()]


def forget_canceled(tx: Connection) -> None:
    """Groups of which no exit is open any more need no looking after."""
    tx.execute(_CANCELED)


def unflattened(tx: Connection, limit: int) -> list[Unflattened]:
    return [Unflattened(**row) for row in tx.execute(_UNFLATTENED, {"limit": limit}).mappings()]
