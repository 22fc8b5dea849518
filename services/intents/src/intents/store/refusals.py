"""What controls refused: counted in the statistics, kept for a time, and logged up to a number a minute."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, text

from chassis import tracing
from intents import model
from intents.store.statement import Statement, Transaction
from intents.store.statistics import KEPT

_REFUSE = Statement(
    "intents_refuse",
    (
        *("uuid", "uuid", "uuid", "text", "text", "text", "text", "jsonb", "timestamptz", "text[]"),
        *("text", "json", "uuid", "text"),
    ),
    """
    WITH kept AS (
        INSERT INTO intents.refusal (account_id, id, organization_id, type, symbol, actor_type, actor_id, reasons,
                                     created_at, order_side, spec, ref_intent_id, request_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $11, $12, $13, $14)
    )
    INSERT INTO intents.statistic AS counted (account_id, organization_id, width, bucket, kind, key, amount)
    SELECT $1, $3, width, date_trunc(width, $9, 'UTC'), 'refusal', code, 1
    FROM unnest(ARRAY['minute', 'hour', 'day']) width, unnest($10) code ORDER BY width, code
    ON CONFLICT (account_id, width, bucket, kind, key) DO UPDATE SET amount = counted.amount + 1
    RETURNING 1
    """,
)


def refuse(tx: Transaction, submission: model.Submission, refusal: model.ControlRejected) -> None:
    """Keep a refusal by controls, and count it; `usecases.log_refusals` takes it to the log."""
    organization_id = submission.caller.organization_id if submission.caller else None
    tx.write(
        _REFUSE,
        (
            str(submission.account_id),
            str(uuid4()),
            organization_id and str(organization_id),
            submission.command.type,
            refusal.symbol,
            *submission.actor,
            json.dumps(refusal.reasons),
            refusal.moment,
            sorted({str(reason["code"]) for reason in refusal.reasons}),
            *_command(submission, refusal),
        ),
    )


def _command(submission: model.Submission, refusal: model.ControlRejected) -> tuple[str | None, ...]:
    """Of what was refused its side, spec, the intent it is about, and the request that it came with."""
    command, trace = submission.command, tracing.current.get()
    spec = None if isinstance(command, model.HoldToTotal) or command.spec is None else json.dumps(command.spec.as_json)
    about = None if command.ref_intent_id is None else str(command.ref_intent_id)
    side = None if refusal.order_side is None else str(refusal.order_side)
    return side, spec, about, trace.request_id if trace else None


_KEYS = text("""
    SELECT created_at, id, symbol = coalesce(:symbol, symbol)
        AND (CAST(:code AS text) IS NULL OR reasons @> jsonb_build_array(jsonb_build_object('code', :code))) AS passes
    FROM intents.refusal
    WHERE account_id = :account_id AND (created_at, id) < (CAST(:created_at AS timestamptz), :id)
      AND created_at >= CAST(:since AS timestamptz)
    ORDER BY created_at DESC, id DESC LIMIT :limit
""")
_COLUMNS = """
    r.account_id, r.organization_id, r.id, r.type, r.symbol, r.order_side, r.spec, r.ref_intent_id, r.actor_type,
    r.actor_id, r.reasons, r.request_id, r.created_at
"""
_REFUSALS = text(f"""
    SELECT {_COLUMNS} FROM unnest(CAST(:moments AS timestamptz[]), CAST(:ids AS uuid[])) AS wanted (created_at, id)
    JOIN intents.refusal r ON r.account_id = :account_id AND r.created_at = wanted.created_at AND r.id = wanted.id
    ORDER BY r.created_at DESC, r.id DESC
""")  # noqa: S608 - only our own column names
# Organizations take turns, their accounts by how long they have waited.
_ACCOUNTS = text("""
    SELECT account_id FROM (
        SELECT account_id, min(created_at) AS since,
               row_number() OVER (PARTITION BY organization_id ORDER BY min(created_at)) AS turn
        FROM intents.refusal WHERE sequence IS NULL GROUP BY organization_id, account_id
    ) waiting ORDER BY turn, since LIMIT :limit
""")
_UNLOGGED = text(f"""
    SELECT {_COLUMNS} FROM intents.refusal r WHERE account_id = :account_id AND sequence IS NULL
    ORDER BY created_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
""")  # noqa: S608 - only our own column names
_LOGGED = text("""
    SELECT date_trunc('minute', created_at, 'UTC') AS minute, count(*) AS events FROM intents.refusal
    WHERE account_id = :account_id AND created_at >= date_trunc('minute', CAST(:since AS timestamptz), 'UTC')
      AND sequence > 0
    GROUP BY minute
""")
_MARK = text("""
    UPDATE intents.refusal r SET sequence = given.sequence
    FROM unnest(CAST(:moments AS timestamptz[]), CAST(:ids AS uuid[]), CAST(:sequences AS bigint[]))
         AS given (created_at, id, sequence)
    WHERE r.account_id = :account_id AND r.created_at = given.created_at AND r.id = given.id
""")


def refusal_keys(
    tx: Connection, account_id: UUID, wanted: model.RefusalFilter, before: model.RefusalKey | None, limit: int
) -> list[tuple[model.RefusalKey, bool]]:
    """The next keys, newest first, each with whether its refusal passes the filter."""
    created_at, refusal_id = before or (wanted.until or "infinity", UUID(int=0))
    place = {"account_id": account_id, "created_at": created_at, "id": refusal_id, "since": wanted.since or "-infinity"}
    rows = tx.execute(_KEYS, {**place, "symbol": wanted.symbol, "code": wanted.code, "limit": limit})
    return [(model.RefusalKey(row.created_at, row.id), row.passes) for row in rows]


def refusals(tx: Connection, account_id: UUID, keys: Sequence[model.RefusalKey]) -> list[model.RefusedCommand]:
    values = {"moments": [key.created_at for key in keys], "ids": [key.id for key in keys]}
    return [_refused(row) for row in tx.execute(_REFUSALS, {"account_id": account_id, **values}).mappings()]


def accounts_with_unlogged_refusals(tx: Connection, limit: int = 500) -> list[UUID]:
    """The next accounts whose refusals are to be taken to their logs."""
    return list(tx.execute(_ACCOUNTS, {"limit": limit}).scalars())


def unlogged_refusals(tx: Connection, account_id: UUID, limit: int = 500) -> list[model.RefusedCommand]:
    """The oldest that are not logged yet, locked."""
    rows = tx.execute(_UNLOGGED, {"account_id": account_id, "limit": limit}).mappings()
    return [_refused(row) for row in rows]


def logged_by_minute(tx: Connection, account_id: UUID, since: datetime) -> dict[datetime, int]:
    """How many refusals of each minute from then on are in the log."""
    rows = tx.execute(_LOGGED, {"account_id": account_id, "since": since})
    return {row.minute.astimezone(UTC): row.events for row in rows}


def mark_logged(tx: Connection, account_id: UUID, sequences: Mapping[model.RefusalKey, int]) -> None:
    """Note the sequence of each in the log; 0 for one that is not to be there."""
    keys = list(sequences)
    place = {"moments": [key.created_at for key in keys], "ids": [key.id for key in keys]}
    tx.execute(_MARK, {"account_id": account_id, **place, "sequences": list(sequences.values())})


def _refused(row: Mapping[Any, Any]) -> model.RefusedCommand:
    named = {name: value for name, value in row.items() if name not in ("actor_type", "actor_id")}
    return model.RefusedCommand(**named, actor=model.Actor(row["actor_type"], row["actor_id"]))


_PRUNE = text("""
    WITH old AS (
        DELETE FROM intents.refusal WHERE ctid IN (
            SELECT ctid FROM intents.refusal WHERE created_at < now() - make_interval(days => :days) LIMIT :most)
        RETURNING account_id
    ), counted AS (
        DELETE FROM intents.statistic WHERE account_id IN (SELECT account_id FROM old)
        AND (width = 'minute' AND bucket < now() - CAST(:minute AS interval)
             OR width = 'hour' AND bucket < now() - CAST(:hour AS interval))
    )
    SELECT count(*) FROM old
""")
PRUNED_AT_ONCE = 5_000


def prune_refusals(tx: Connection, days: int) -> int:
    """Delete refusals older than that, and of their accounts the fine buckets that are out of use.

    The buckets of an account are pruned when its log grows, which of one that only refuses it never does.
    """
    values = {"days": days, "most": PRUNED_AT_ONCE, **KEPT}
    pruned: int = tx.execute(_PRUNE, values).scalar_one()
    return pruned
