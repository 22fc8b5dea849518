"""What is due is taken in hand: a lease and a recovery point, in one statement for many intents."""

import time
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from intents.execution.credentials import BEST_CREDENTIAL
from intents.execution.settling import BrokerOrder, Command, Held
from intents.execution.work import Claimed, Work
from intents.model import Intent, Spec, Status
from intents.store.direct import Direct, Statement

# The lease is the recovery point as well: from here on the command may have been sent. What is looked up by key is a
# subquery and not a join, because a join may be planned as a scan while the table is still small.
_CLAIM = Statement(
    "execution_claim",
    ("integer", "uuid", "double precision", "uuid[]", "integer"),
    f"""
    WITH due AS MATERIALIZED (
        SELECT account_id, id, submit_started_at FROM intents.intent
        WHERE open_actions > 0 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
          AND account_id <> ALL ($4)
        ORDER BY next_attempt_at LIMIT $1 FOR UPDATE SKIP LOCKED
    ), taken AS (
        UPDATE intents.intent i
        SET lease_token = $2, lease_until = now() + make_interval(secs => $3), lease_holder = $5,
            next_attempt_at = now() + make_interval(secs => $3),
            submit_started_at = now()
        FROM due WHERE i.account_id = due.account_id AND i.id = due.id
        RETURNING i.account_id, i.id, i.organization_id, i.environment, i.symbol, i.order_side, i.spec, i.quantity,
                  i.filled_quantity, i.status, i.broker_order_id, i.created_at, i.attempts, i.done_sequence,
                  i.route_strategy, i.reason_code, i.version, i.updated_at, i.open_actions,
                  due.submit_started_at AS started_before
    ), command AS (
        SELECT t.*, a.id AS action_id, a.sequence, a.type, a.traceparent, coalesce(a.spec, t.spec) AS wanted
        FROM taken t CROSS JOIN LATERAL (
            SELECT id, sequence, type, traceparent, spec FROM intents.action a
            WHERE a.account_id = t.account_id AND a.intent_id = t.id AND a.sequence > t.done_sequence
            ORDER BY a.sequence LIMIT 1
        ) a
    ), started AS (
        INSERT INTO intents.broker_order (account_id, client_order_id, intent_id, action_sequence, status)
        SELECT account_id, 'tip-' || replace(action_id::text, '-', ''), id, sequence, 'STARTED'
        FROM command WHERE type <> 'CANCEL'
        ON CONFLICT (account_id, client_order_id) DO NOTHING
    )
    SELECT t.account_id, t.id, now(), t.action_id, t.type, t.created_at, t.symbol, t.order_side, t.wanted,
           t.quantity, t.filled_quantity, t.status, t.broker_order_id,
           CASE WHEN t.broker_order_id IS NULL THEN 0
                ELSE coalesce((SELECT o.filled_quantity FROM intents.broker_order o
                               WHERE o.account_id = t.account_id AND o.intent_id = t.id
                                 AND o.broker_order_id = t.broker_order_id), 0) END,
           t.started_before, t.attempts, (SELECT broker FROM accounts_api.account WHERE id = t.account_id),
           t.environment,
           CASE WHEN (SELECT trading_state FROM controls_api.account_switch WHERE account_id = t.account_id) = 'HALTED'
                THEN 'account'
                WHEN (SELECT trading_state FROM controls_api.organization_switch
                      WHERE organization_id = t.organization_id) = 'HALTED'
                THEN 'organization' END,
           (SELECT stale_order_millis FROM controls_api.symbol_time
            WHERE account_id = t.account_id AND symbol = t.symbol),
           (SELECT CASE WHEN status = 'active' THEN id || ':' || vault_version ELSE id || ' is ' || status END
            FROM accounts_api.credential WHERE account_id = t.account_id ORDER BY {BEST_CREDENTIAL} LIMIT 1),
           t.sequence, t.route_strategy, t.reason_code, t.version, t.updated_at, t.open_actions, t.done_sequence,
           t.traceparent
    FROM command t
    """,  # noqa: S608 - a constant
)


def claim(
    direct: Direct, limit: int, lease_seconds: float, except_of: Sequence[UUID] = (), holder: int | None = None
) -> list[Work]:
    """Take what is due and nobody else's: the earliest unsettled command of each intent."""
    token, asked_at = uuid4(), time.monotonic()
    resting = [str(account_id) for account_id in except_of]
    rows = direct.write(_CLAIM, (limit, str(token), lease_seconds, resting, holder))
    claimed_at = time.monotonic()
    return [_work(row, token, asked_at + lease_seconds, claimed_at, holder) for row in rows]


def _work(row: tuple[Any, ...], token: UUID, lease_ends: float, claimed_at: float, holder: int | None) -> Work:
    values = [*row[:2], token, lease_ends, *row[2:_CLAIMED], Claimed(claimed_at, *row[_CLAIMED:]), holder]
    values[_SPEC], values[_STATUS] = Spec.from_json(values[_SPEC]), Status(values[_STATUS])
    return Work(*values)


def held_since_claim(work: Work) -> Held:
    """The intent of a CREATE that was never tried before, as it was when it was claimed: nobody need read it again."""
    claimed = work.claimed
    now = work.now + timedelta(seconds=time.monotonic() - claimed.at)  # the database's clock, as well as we know it
    intent = Intent(
        id=work.intent_id,
        symbol=work.symbol,
        order_side=work.order_side,
        route_strategy=claimed.route_strategy,
        spec=work.spec,
        quantity=work.quantity,
        status=work.status,
        filled_quantity=work.filled_quantity,
        average_fill_price=None,
        broker_order_id=None,
        reason_code=claimed.reason_code,
        outcome=None,
        version=claimed.version,
        created_at=work.created_at,
        updated_at=claimed.updated_at,
    )
    name, none = work.client_order_id, Decimal(0)
    return Held(
        account_id=work.account_id,
        intent=intent,
        orders={name: BrokerOrder(name, claimed.sequence, None, "STARTED", set(), none, none, none)},
        command=Command(work.action_id, claimed.sequence, work.type, work.spec),
        now=now,
        lease_token=work.lease_token,
        holder=work.lease_token,
        next_attempt_at=now,
        submit_started_at=work.now,
        accepted_at=None,
        attempts=work.attempts,
        open_actions=claimed.open_actions,
        done_sequence=claimed.done_sequence,
        traceparent=claimed.traceparent,
    )


_CLAIMED = 21
_SPEC, _STATUS = (Work.__slots__.index(name) for name in ("spec", "status"))
