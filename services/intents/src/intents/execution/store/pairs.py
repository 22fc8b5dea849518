"""Exits of an order group that are one order at the broker: what each has to know of the other."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from intents.execution.client_order_id import of_action_sql
from intents.execution.model.commands import LeasedCommand, Pair
from intents.model import Spec, Status
from intents.model.groups import SIBLINGS, WAITING_FOR_SIBLING
from intents.store.statement import Statement, Transaction
from intents.store.statuses import TERMINAL_SQL

SIBLINGS_SQL = ", ".join(f"'{role}'" for role in sorted(SIBLINGS))


def pair_of(intent: str) -> str:
    """A subquery: the other exit of an intent that is one; NULL where each is an order of its own."""
    return f"""(
        SELECT jsonb_build_object('client_order_id', {of_action_sql("a.id")}, 'intent_id', s.id, 'spec', s.spec,
            'is_held', s.status = 'PENDING' AND s.reason_code = '{WAITING_FOR_SIBLING}' AND s.open_actions = 0,
            'is_started', s.submit_started_at IS NOT NULL,
            'is_settled', s.done_sequence >= a.sequence OR s.status IN ({TERMINAL_SQL}),
            'is_sent', o.status IS NOT NULL AND (o.broker_order_id IS NOT NULL OR o.status <> 'REJECTED'),
            'is_accepted', o.broker_order_id IS NOT NULL,
            'credential', CASE WHEN o.broker_order_id IS NOT NULL THEN o.credential END,
            'latest', (SELECT l.client_order_id FROM intents.broker_order l
                       WHERE l.intent_id = s.id AND l.broker_order_id = s.broker_order_id LIMIT 1))
        FROM intents.intent s
        CROSS JOIN LATERAL (
            SELECT id, sequence FROM intents.action WHERE intent_id = s.id ORDER BY sequence LIMIT 1) a
        LEFT JOIN LATERAL (
            SELECT status, broker_order_id, credential FROM intents.broker_order
            WHERE account_id = s.account_id AND client_order_id = {of_action_sql("a.id")} OFFSET 0) o ON true
        WHERE s.account_id = {intent}.account_id AND s.group_id = {intent}.group_id AND s.id <> {intent}.id
          AND s.group_role IN ({SIBLINGS_SQL}) AND (
              SELECT paired FROM intents.intent_group g
              WHERE g.account_id = {intent}.account_id AND g.id = {intent}.group_id))"""  # noqa: S608


def to_be_adopted(account: str, like: str = "") -> str:
    """A query: symbols of exits that the broker may have got with their siblings, and that their intents have not found
    there yet. `like`: conditions beside.

    The order by the symbol is for the planner, which otherwise takes an index of all orders of the account.
    """
    return f"""
    SELECT i.symbol FROM (
        SELECT account_id, id, group_id, symbol FROM intents.intent
        WHERE account_id = {account} AND status NOT IN ({TERMINAL_SQL})
          AND group_role IN ({SIBLINGS_SQL}) AND broker_order_id IS NULL {like}
        ORDER BY symbol OFFSET 0) i
    WHERE (SELECT paired FROM intents.intent_group g WHERE g.account_id = i.account_id AND g.id = i.group_id)
      AND (SELECT true FROM intents.intent s
           WHERE s.account_id = i.account_id AND s.group_id = i.group_id AND s.id <> i.id
             AND s.group_role IN ({SIBLINGS_SQL})
             AND (s.submit_started_at IS NOT NULL OR s.broker_order_id IS NOT NULL) LIMIT 1)"""  # noqa: S608


_PAIR = Statement(
    "execution_pair",
    ("uuid", "uuid"),
    f"SELECT {pair_of('i')} AS pair FROM intents.intent i WHERE i.account_id = $1 AND i.id = $2",  # noqa: S608
)


def pair_from(columns: Mapping[str, Any] | None) -> Pair | None:
    if columns is None:
        return None
    named = {name: columns[name] for name in Pair._fields}
    return Pair(**{**named, "spec": Spec.from_json(columns["spec"]), "intent_id": UUID(columns["intent_id"])})


def with_pair(tx: Transaction, command: LeasedCommand) -> LeasedCommand:
    """The command with the other exit as it stands now."""
    if command.pair is None:
        return command
    [row] = tx.read(_PAIR, (str(command.account_id), str(command.intent_id)))
    return replace(command, pair=pair_from(row.pair))


def stop_command(command: LeasedCommand) -> LeasedCommand | None:
    """The CREATE of the stop that is sent with the command, as if it were sent by itself; without its own facts."""
    pair = command.pair
    if command.stop is None or pair is None or pair.intent_id is None:
        return None
    alone = replace(command, intent_id=pair.intent_id, spec=pair.spec, quantity=pair.spec.quantity)
    return replace(alone, status=Status.PENDING, started_before=None, pair=None, stop_command=None)
