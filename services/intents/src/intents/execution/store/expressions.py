"""Conditions that several statements of execution share."""

from intents.execution.model.locked_intent import MISSING, STARTED
from intents.store.broker_reads import SHORTEST_SECONDS
from tip_brokers.protocol import ENDED, OrderStatus

MISSING_HOURS = 24  # how long what was given up is searched for: as long as an order of the day can live

IS_DUE = """
    i.open_actions > 0 AND i.next_attempt_at <= now() AND (i.lease_until IS NULL OR i.lease_until <= now())"""
"""Of an intent `i`: its next command is to be carried out, and no executor has it."""

WAITS = """
    i.open_actions > 0 AND i.waiting_since IS NOT NULL AND i.next_attempt_at > now()
    AND (i.lease_until IS NULL OR i.lease_until <= now())"""
"""Of an intent `i`: its next command is in the wait queue of an open circuit. What is due is so also there."""

QUEUES_WITH_WORK = """
        (SELECT lane, organization_id FROM intents.intent WHERE open_actions > 0
         ORDER BY lane, organization_id LIMIT 1)
        UNION ALL
        SELECT next.lane, next.organization_id FROM queue CROSS JOIN LATERAL (
            SELECT i.lane, i.organization_id FROM intents.intent i
            WHERE i.open_actions > 0 AND (i.lane, i.organization_id) > (queue.lane, queue.organization_id)
            ORDER BY i.lane, i.organization_id LIMIT 1) AS next"""
"""A recursive query `queue`: each organization in each lane, by leaps through the index. A backlog of one costs the
others nothing."""

ENDED_SQL = ", ".join(f"'{status}'" for status in OrderStatus if status in ENDED)
"""The statuses of broker orders of which nothing more can be filled."""

UNENDED = f"""
    status NOT IN ({ENDED_SQL})
    AND (broker_order_id IS NOT NULL
         OR (status = '{MISSING}' AND updated_at > now() - interval '{MISSING_HOURS} hours'))
"""
"""Of a broker order: not known to have ended, or given up not long ago. What is being sent is the executor's."""

IN_FLIGHT = f"(status = '{STARTED}' AND broker_order_id IS NULL)"
"""Of a broker order: its command has been begun, and it was not seen at the broker yet."""

PERHAPS_SENT = f"""
    ({IN_FLIGHT} AND EXISTS (SELECT FROM intents.intent i WHERE i.account_id = o.account_id AND i.id = o.intent_id
                             AND i.submit_started_at IS NOT NULL))
"""
"""Of a broker order `o`: in flight, and nobody has said that it certainly was not sent and has to wait."""

UNCONFIRMED = "(reconciled_at IS NULL OR reconciled_at < updated_at)"
"""Of a position: the broker has not reported it since it moved."""

NOT_REQUESTED = f"""
    next_read_at > greatest(now(), attempted_at + make_interval(secs => {SHORTEST_SECONDS}))"""
"""Of an account at its broker: due later than a request would have it."""
