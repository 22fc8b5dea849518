"""Writes to the accounts' logs as the platform does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from sqlalchemy import create_engine, text

from chassis import db, hints
from tip_testing.platform_plugin import Platform

ORDER = {
    "intent_id": "5b3a7e0e-6c1f-4a3e-9d5f-2f0f6a1d9c11",
    "broker_order_id": "b-1",
    "symbol": "AAPL",
    "order_side": "BUY",
    "order_kind": "Limit",
    "status": "ACCEPTED",
    "quantity": "10",
    "filled_quantity": "0",
    "leaves_quantity": "10",
    "average_fill_price": None,
    "limit_price": "187.50",
}

_BUMP = text("""
    INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
    VALUES (:account_id, :count, '', '')
    ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + :count
    RETURNING last_sequence
""")
_EVENTS = text("""
    INSERT INTO intents.account_event (account_id, sequence, id, type, payload, traceparent, occurred_at)
    SELECT :account_id, sequence, gen_random_uuid(), :type, :payload, :traceparent, :occurred_at
    FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS sequence
""")
_ACTION = text("""
    INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload,
        symbol, order_side, spec, route_strategy, actor_type, actor_id, controls, to_status, intent_created_at,
        previous_hash, hash, created_at)
    VALUES (:account_id, :sequence, gen_random_uuid(), gen_random_uuid(), 'paper', gen_random_uuid(), 'CREATE', '{}',
        'AAPL', 'BUY', :spec, 'AUTO', 'api_key', 'some-key', :controls, 'PENDING', now(), '\\x01', '\\x02', now())
""")


class Writer:
    """Writes as the platform does: the head is bumped in the transaction of the event."""

    def __init__(self, platform: Platform) -> None:
        self._engine = create_engine(db.with_driver(platform.admin_url), pool_size=4, pool_pre_ping=True)
        self._hints = hints.LogHeadHints(platform.redis_url)

    def append(
        self,
        account_id: UUID,
        count: int = 1,
        *,
        kind: str = "BROKER_ORDER",
        payload: dict[str, Any] | None = None,
        traceparent: str | None = None,
        age: str = "0 seconds",
        hint: bool = True,
    ) -> int:
        """Append events; the account's last sequence. Without `hint` no hint is published."""
        from json import dumps

        with self._engine.begin() as tx:
            last = int(tx.execute(_BUMP, {"account_id": account_id, "count": count}).scalar_one())
            moment = tx.execute(text("SELECT now() - CAST(:age AS interval)"), {"age": age}).scalar_one()
            values = {"account_id": account_id, "first": last - count + 1, "last": last, "type": kind}
            event = {"payload": dumps(payload or ORDER), "traceparent": traceparent, "occurred_at": moment}
            tx.execute(_EVENTS, values | event)
        if hint:
            self._hints.publish(account_id, last)
        return last

    def append_action(self, account_id: UUID, spec: str, controls: str = "{}") -> int:
        with self._engine.begin() as tx:
            last = int(tx.execute(_BUMP, {"account_id": account_id, "count": 1}).scalar_one())
            tx.execute(_ACTION, {"account_id": account_id, "sequence": last, "spec": spec, "controls": controls})
        self._hints.publish(account_id, last)
        return last

    def execute(self, statement: str, **values: Any) -> Any:
        with self._engine.begin() as tx:
            return tx.execute(text(statement), values)

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        """Nobody else reads the table meanwhile."""
        with self._engine.begin() as tx:
            tx.execute(text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
            yield

    def close(self) -> None:
        self._engine.dispose()
