"""The calls to brokers beside the intents that they are about. Those that share a key share a row: the last counts."""

from collections.abc import Sequence
from typing import Any

from intents.execution.model.calls import BrokerCall


def append_calls(intents: str, calls: str) -> str:
    """A part of a statement. `intents` has the `place` of each, and `calls` is a parameter with what `call_rows` made.

    Postgres changes a row only once in a statement, so that calls of one key are counted before. What is written again,
    after a commit that was not answered, is not counted again.
    """
    return f"""
        INSERT INTO intents.broker_call AS known (account_id, organization_id, intent_id, key, action_id, verb,
            started_at, last_started_at, milliseconds, times, result, reason)
        SELECT i.account_id, i.organization_id, i.id, given.key, given.action_id, given.verb, given.started_at,
               given.last_started_at, given.milliseconds, given.times, given.result, given.reason
        FROM jsonb_to_recordset({calls}) AS given(
            of integer, key text, action_id uuid, verb text, started_at timestamptz, last_started_at timestamptz,
            milliseconds double precision, times integer, result text, reason text)
        JOIN {intents} i ON i.place = given.of
        ON CONFLICT (account_id, intent_id, key) DO UPDATE SET last_started_at = excluded.last_started_at,
            milliseconds = excluded.milliseconds, times = known.times + excluded.times
        WHERE known.last_started_at < excluded.last_started_at
    """  # noqa: S608 - only our own words


def call_rows(calls: Sequence[BrokerCall], of: int) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for call in calls:
        first = rows.get(call.key, {"of": of, "key": call.key, "started_at": call.started_at, "times": 0})
        rows[call.key] = first | {
            "action_id": call.action_id,
            "verb": call.verb,
            "last_started_at": call.started_at,
            "milliseconds": call.milliseconds,
            "times": first["times"] + 1,
            "result": call.result,
            "reason": call.reason,
        }
    return list(rows.values())
