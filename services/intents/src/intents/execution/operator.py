"""What only a person can find out: orders whose outcome no credential can query any more."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Engine, text

from intents.brokers import Order, OrderStatus
from intents.execution import recorder
from intents.execution.client_order_id import of_action_sql, of_key_sql
from intents.execution.model.inputs import Heard, Resolution
from intents.execution.model.verdicts import OPERATOR_REQUIRED
from intents.store.connections import PreparedConnections
from intents.store.statuses import TERMINAL_SQL

ORDER, UNWANTED = "ORDER", "UNWANTED"
_UNRESOLVED = f"""
    SELECT i.account_id, i.id AS intent_id, coalesce(a.name, o.client_order_id) AS client_order_id,
           coalesce(a.type, '{ORDER}') AS type, i.status, i.reason_code, i.symbol, i.order_side,
           coalesce(a.spec, i.spec) AS spec, i.submit_started_at, o.credential, l.broker_account, i.broker_order_id,
           o.client_order_id AS order_name
    FROM intents.intent i
    LEFT JOIN LATERAL (
        SELECT {of_action_sql("id")} AS name, type, spec FROM intents.action a
        WHERE a.account_id = i.account_id AND a.intent_id = i.id AND a.sequence > i.done_sequence
        ORDER BY a.sequence LIMIT 1) a ON i.open_actions > 0
    LEFT JOIN LATERAL (
        SELECT client_order_id, credential FROM intents.broker_order o
        WHERE o.account_id = i.account_id AND o.intent_id = i.id
          AND (o.broker_order_id = i.broker_order_id OR o.client_order_id = a.name)
        ORDER BY coalesce(o.client_order_id = a.name, false) DESC LIMIT 1) o ON true
    LEFT JOIN intents.broker_login l ON l.account_id = i.account_id AND l.credential = o.credential
    WHERE (i.open_actions > 0 AND i.outcome = 'unknown') OR i.reason_code = '{OPERATOR_REQUIRED}'
"""  # noqa: S608 - a constant
# Orders that no intent asks for and that have not been seen to end: the system cancels them where it can.
_UNWANTED = f"""
    SELECT i.account_id, i.id, o.client_order_id, '{UNWANTED}', i.status, i.reason_code, i.symbol, i.order_side, i.spec,
           NULL::timestamptz, o.credential, l.broker_account, o.broker_order_id, {of_key_sql("o.client_order_id")}
    FROM intents.broker_order o
    JOIN intents.intent i ON i.account_id = o.account_id AND i.id = o.intent_id
    LEFT JOIN intents.broker_login l ON l.account_id = o.account_id AND l.credential = o.credential
    WHERE o.broker_order_id IS NOT NULL AND (o.unwanted_since IS NOT NULL OR i.status IN ({TERMINAL_SQL}))
      AND o.status NOT IN ('FILLED', 'CANCELED', 'EXPIRED', 'REJECTED', 'REPLACED')
"""  # noqa: S608 - a constant
_LIST = text(f"{_UNRESOLVED} UNION ALL {_UNWANTED}")


class NotUnresolved(Exception):
    """There is no command with this client order id that waits for its outcome."""


class WasAccepted(Exception):
    """The broker has accepted the order: it cannot be said that it never arrived."""


class StillUnresolved(Exception):
    """What was found is recorded, and leaves the command or the order as open as it was."""


class Unresolved(NamedTuple):
    """A command that may have been sent, an ORDER that nobody can query, one that is UNWANTED, and where it is.

    `client_order_id` names it for `resolve`.
    """

    account_id: UUID
    intent_id: UUID
    client_order_id: str
    type: str
    status: str
    reason_code: str | None
    symbol: str
    order_side: str
    spec: dict[str, dict[str, str]]
    submit_started_at: datetime | None
    credential: str | None
    broker_account: str | None
    broker_order_id: str | None
    order_name: str | None


class Found(NamedTuple):
    """The order as the operator has seen it at the broker."""

    broker_order_id: str
    status: OrderStatus
    filled_quantity: Decimal
    average_price: Decimal | None


def unresolved(engine: Engine) -> list[Unresolved]:
    """Commands whose outcome is not known, and open orders that their intents do not ask for."""
    with engine.connect() as tx:
        return [Unresolved(*row) for row in tx.execute(_LIST)]


def resolve(engine: Engine, client_order_id: str, found: Found | None, note: str) -> Unresolved:
    """Settle a command by what an operator has found at the broker: the order, or that there is none."""
    command = _command(engine, client_order_id)
    if found is None and command.type in (ORDER, UNWANTED):
        raise WasAccepted
    if found is None:
        happening: Heard | Resolution = Resolution(command.account_id, command.intent_id, client_order_id, note)
    else:
        happening = Heard(command.account_id, _order(command, found), datetime.now(UTC))
    recorder.record(PreparedConnections(engine), [happening])
    # A command that has become an open order, which nobody can query either, is settled all the same.
    if any((other.client_order_id, other.type) == (client_order_id, command.type) for other in unresolved(engine)):
        raise StillUnresolved
    return command


def _command(engine: Engine, client_order_id: str) -> Unresolved:
    for command in unresolved(engine):
        if command.client_order_id == client_order_id:
            return command
    raise NotUnresolved


def _order(command: Unresolved, found: Found) -> Order:
    now = datetime.now(UTC)
    [(kind, terms)] = command.spec.items()
    return Order(
        command.order_name or command.client_order_id,
        found.broker_order_id,
        found.status,
        command.symbol,
        command.order_side,
        kind,
        Decimal(terms["quantity"]) if command.type == "CREATE" else None,
        found.filled_quantity,
        found.average_price,
        now,
        now,
    )
