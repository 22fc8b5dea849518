"""What is due is claimed: a lease and a recovery point, in one statement for many intents."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any
from uuid import UUID, uuid4

from control_rules import PRICE_MAX_AGE
from intents.execution.client_order_id import of_action_sql
from intents.execution.clock import elapsed
from intents.execution.model.commands import DERIVED, PRICE_WAIT, ClaimSnapshot, KnownOrder, LeasedCommand
from intents.execution.model.locked_intent import STARTED, BrokerOrder, Command, LockedIntent, Progress
from intents.execution.store.credentials import BEST_FIRST
from intents.execution.store.expressions import ENDED_SQL
from intents.execution.store.pairs import SIBLINGS_SQL, pair_from, pair_of, stop_command, with_pair
from intents.execution.store.sending_facts import with_facts, with_order_facts
from intents.execution.store.shares import CLAIMABLE, Shares, as_json
from intents.model import Intent, Spec, Status, SubmitFacts
from intents.store.facts import facts_from, facts_of
from intents.store.statement import Row, Statement, Transaction

_BEST = f"""
    (SELECT CASE WHEN status = 'active' THEN id || ':' || vault_version ELSE id || ' is ' || status END
     FROM accounts_api.credential WHERE account_id = t.account_id ORDER BY {BEST_FIRST} LIMIT 1)"""  # noqa: S608
# After the database was restored to an earlier state everything it does not know to be settled may have been sent.
_RESTORED_AT = """
    SELECT coalesce((SELECT CASE WHEN reason = 'INSTALLED' THEN '-infinity'::timestamptz ELSE started_at END
                     FROM intents.log_epoch l WHERE l.epoch = current.epoch), now()) AS at
    FROM (SELECT intents_api.current_log_epoch() AS epoch) current"""
_STARTED_BEFORE = """
    coalesce(t.sent_before, (SELECT at FROM restored WHERE a.created_at < at))"""
# The account that a credential opens is recorded before anything is sent with it: without that, nothing was.
_WAS_USED = (
    """EXISTS (SELECT FROM intents.broker_login l WHERE l.account_id = o.account_id AND l.credential = o.credential)"""
)
# Under which credential the order in question is at the broker: that which may have been sent before, or that which is
# to be replaced or canceled, or that with which it may have been sent. None for a CREATE that nobody has sent. A CREATE
# that has an order at the broker has it as a leg of another one: it is only to be read there.
_HAS_NO_ORDER = "a.type = 'CREATE' AND t.broker_order_id IS NULL"
_BOUND = f"""
    CASE WHEN {_HAS_NO_ORDER} AND {_STARTED_BEFORE} IS NULL THEN p.pair ->> 'credential'
         WHEN {_HAS_NO_ORDER} THEN (
             SELECT credential FROM intents.broker_order o
             WHERE o.account_id = t.account_id AND o.client_order_id = {of_action_sql("a.id")}
               AND {_WAS_USED})
         ELSE (SELECT credential FROM intents.broker_order o
               WHERE o.intent_id = t.id AND o.broker_order_id = t.broker_order_id
               LIMIT 1) END"""  # noqa: S608

# An order that was seen before its intent had claimed it, as after a restore, is its intent's from here on.
_TAKE_OVER = """
            intent_id = excluded.intent_id, action_sequence = excluded.action_sequence,
            status = CASE WHEN o.intent_id IS NULL THEN 'STARTED' ELSE o.status END,
            broker_order_id = CASE WHEN o.intent_id IS NOT NULL THEN o.broker_order_id END,
            filled_quantity = CASE WHEN o.intent_id IS NULL THEN 0 ELSE o.filled_quantity END,
            filled_value = CASE WHEN o.intent_id IS NULL THEN 0 ELSE o.filled_value END"""

# The lease is the recovery point as well: from here on the command may have been sent. What is looked up by key is a
# subquery and not a join, because a join may be planned as a scan while the table is still small. A run that has left
# its lease behind may have sent: what the broker did not have before that proves nothing. A CREATE with a reason is one
# that closes a position: no caller gives one. A leg of an order group is sent for what its group has left for it.
_CLAIM = Statement(
    "execution_claim",
    ("integer", "uuid", "double precision", "uuid[]", "integer", "json", "json", "integer"),
    f"""
    WITH RECURSIVE restored AS MATERIALIZED ({_RESTORED_AT}), {CLAIMABLE}, taken AS (
        UPDATE intents.intent i
        SET lease_token = $2, lease_until = now() + make_interval(secs => $3), lease_holder = $5,
            next_attempt_at = now() + make_interval(secs => $3),
            submit_started_at = now(), waiting_since = NULL,
            absences = CASE WHEN i.lease_until IS NULL THEN i.absences ELSE 0 END
        FROM claimable c WHERE i.account_id = c.account_id AND i.id = c.id
        RETURNING i.account_id, i.id, i.organization_id, i.environment, i.lane, i.symbol, i.order_side, i.spec,
                  i.quantity, i.filled_quantity, i.status, i.broker_order_id, i.created_at, i.attempts, i.absences,
                  i.done_sequence, i.route_strategy, i.reason_code, i.version, i.updated_at, i.open_actions,
                  i.extended_hours, i.group_id, i.group_role, c.submit_started_at AS sent_before,
                  c.waiting_since
    ), command AS MATERIALIZED (
        SELECT t.*, a.id AS action_id, a.sequence, a.type, a.traceparent, a.request_id,
               coalesce(CASE WHEN a.type <> 'CREATE' OR t.group_id IS NULL THEN a.spec END, t.spec) AS wanted,
               a.created_at AS submitted_at, a.actor_type = 'system' AS is_own,
               a.type = 'CREATE' AND a.reason IS NOT NULL AS reduce_only,
               {_STARTED_BEFORE} AS started_before, {_BEST} AS best, {_BOUND} AS bound, p.pair
        FROM taken t CROSS JOIN LATERAL (
            SELECT id, sequence, type, traceparent, request_id, spec, created_at, actor_type, reason
            FROM intents.action a
            WHERE a.intent_id = t.id AND a.sequence > t.done_sequence
            ORDER BY a.sequence LIMIT 1
        ) a
        CROSS JOIN LATERAL (
            SELECT CASE WHEN t.group_role IN ({SIBLINGS_SQL}) AND a.type = 'CREATE' THEN {pair_of("t")} END AS pair) p
    ), started AS (
        INSERT INTO intents.broker_order AS o
            (account_id, client_order_id, intent_id, action_sequence, status, credential)
        SELECT account_id, {of_action_sql("action_id")}, id, sequence, 'STARTED',
               coalesce(bound, best, '{DERIVED}')
        FROM command t
        WHERE (type = 'REPLACE' OR (type = 'CREATE' AND broker_order_id IS NULL))
          AND (started_before IS NULL OR NOT EXISTS (
            SELECT FROM intents.broker_order o WHERE o.account_id = t.account_id
            AND o.client_order_id = {of_action_sql("action_id")} AND o.intent_id = t.id AND {_WAS_USED}))
        ON CONFLICT (account_id, client_order_id) DO UPDATE SET credential = excluded.credential, {_TAKE_OVER}
    )
    SELECT t.account_id, t.organization_id, t.id AS intent_id, now() AS now, t.action_id, t.type, t.created_at,
           t.symbol, t.order_side, t.wanted AS spec, t.quantity, t.filled_quantity, t.status, t.broker_order_id,
           CASE WHEN t.type = 'REPLACE' THEN (
               SELECT jsonb_agg(jsonb_build_object('client_order_id', o.client_order_id,
                   'broker_order_id', o.broker_order_id, 'ended', o.status IN ({ENDED_SQL}),
                   'filled_quantity', o.filled_quantity::text))
               FROM intents.broker_order o WHERE o.intent_id = t.id) END AS orders,
           t.started_before, t.attempts, t.absences, t.waiting_since,
           (SELECT broker FROM accounts_api.account WHERE id = t.account_id) AS broker, t.environment, t.lane,
           t.submitted_at, t.is_own, t.reduce_only, t.best AS credential, t.bound AS bound_credential,
           t.group_id IS NOT NULL AS in_group, t.pair,
           (SELECT broker_account FROM intents.broker_login l WHERE l.account_id = t.account_id
            AND l.credential = coalesce(t.bound, t.best, '{DERIVED}')) AS opened_account,
           (SELECT held_account FROM intents.broker_account WHERE account_id = t.account_id) AS held_account,
           coalesce((SELECT awaits_reading FROM intents.broker_account WHERE account_id = t.account_id), false)
               AS awaits_reading,
           t.sequence, t.route_strategy, t.reason_code, t.version, t.updated_at, t.open_actions, t.done_sequence,
           t.traceparent, t.request_id, t.extended_hours, CASE WHEN t.environment = 'live' THEN (
               SELECT entitlements FROM identity_api.organization WHERE id = t.organization_id) END AS entitlements,
           facts.*
    FROM command t
    CROSS JOIN LATERAL (
        SELECT NULL::text AS prefix, t.account_id, t.symbol, t.id AS intent_id, NULL::text AS key,
               NULL::text AS client_id
    ) query
    CROSS JOIN LATERAL ({facts_of("query")}) facts
    """,  # noqa: S608 - a constant
)


_COMMAND_COLUMNS = {field.name for field in fields(LeasedCommand)} - {
    "lease_token", "lease_ends", "holder", "facts", "snapshot", "price_wait", "stop_command",
}  # fmt: skip
_snapshot_values = attrgetter(*ClaimSnapshot._fields[1:])


def claim(
    tx: Transaction,
    limit: int,
    lease_seconds: float,
    except_of: Sequence[UUID] = (),
    holder: int | None = None,
    shares: Mapping[str, Shares] | None = None,
    of_others: int | None = None,
) -> list[LeasedCommand]:
    """Take what is due and nobody else's: the earliest unsettled command of each intent, by turns of organizations.

    `limit` and `of_others` are for each lane of which `shares` says nothing.
    """
    token, read_at = uuid4(), elapsed()
    parked_accounts = [str(account_id) for account_id in except_of]
    by_turns = (*as_json(shares or {}), limit if of_others is None else of_others)
    rows = tx.write(_CLAIM, (limit, str(token), lease_seconds, parked_accounts, holder, *by_turns))
    lease = {"lease_token": token, "lease_ends": read_at + lease_seconds, "holder": holder}
    return [_leased(row, read_at, lease) for row in rows]


def _leased(row: Row, read_at: float, lease: Mapping[str, Any]) -> LeasedCommand:
    """What was read is as old as the query: its result may come late, or be picked up late."""
    columns: dict[str, Any] = {**{name: getattr(row, name) for name in _COMMAND_COLUMNS}, **lease}
    snapshot = ClaimSnapshot(read_at, *_snapshot_values(row))
    columns["spec"], columns["status"] = Spec.from_json(columns["spec"]), Status(columns["status"])
    columns["orders"] = tuple(_known_order(known) for known in columns["orders"] or ())
    columns["entitlements"] = frozenset(columns["entitlements"] or ())
    columns["pair"] = pair_from(columns["pair"])
    facts = SubmitFacts(row.now, None) if row.type == "CANCEL" else facts_from(row)
    return LeasedCommand(**columns, facts=facts, snapshot=snapshot)


def _known_order(columns: Mapping[str, Any]) -> KnownOrder:
    return KnownOrder(**{**columns, "filled_quantity": Decimal(columns["filled_quantity"])})


_REFRESH = Statement(
    "execution_refresh",
    ("uuid", "uuid", "uuid"),
    """
    SELECT now() AS now, t.status, k.held_account, coalesce(k.awaits_reading, false) AS awaits_reading
    FROM intents.intent t LEFT JOIN intents.broker_account k ON k.account_id = t.account_id
    WHERE t.account_id = $1 AND t.id = $2 AND t.lease_token = $3 AND t.lease_until > now()
    """,
)


def refresh(
    tx: Transaction,
    command: LeasedCommand,
    price_max_age: timedelta = PRICE_MAX_AGE,
    price_wait: timedelta = PRICE_WAIT,
) -> LeasedCommand | None:
    """The command with what may stop it as it stands now; None if the lease is no longer its own."""
    read_at = elapsed()
    rows = tx.read(_REFRESH, (str(command.account_id), str(command.intent_id), str(command.lease_token)))
    if not rows:
        return None
    [row] = rows
    snapshot = command.snapshot._replace(at=read_at)
    read = row._asdict() | {"status": Status(row.status)}
    current = replace(command, **read, snapshot=snapshot, price_wait=price_wait)
    current = _with_all_facts(tx, with_pair(tx, current), price_max_age)
    stop = stop_command(current)
    return replace(current, stop_command=_with_all_facts(tx, stop, price_max_age)) if stop else current


def _with_all_facts(tx: Transaction, command: LeasedCommand, price_max_age: timedelta) -> LeasedCommand:
    return with_order_facts(tx, with_facts(tx, command), price_max_age)


def locked_at_claim(command: LeasedCommand) -> LockedIntent:
    """The intent of a CREATE that was never tried before, as it was when it was claimed: nobody need read it again."""
    snapshot = command.snapshot
    now = command.now + timedelta(seconds=elapsed() - snapshot.at)  # the database's clock, as well as we know it
    key, none = command.client_order_id, Decimal(0)
    return LockedIntent(
        account_id=command.account_id,
        intent=_intent_at_claim(command),
        orders={key: BrokerOrder(key, snapshot.sequence, None, STARTED, set(), none, none, none)},
        command=Command(command.action_id, snapshot.sequence, command.type, command.spec),
        progress=_progress_at_claim(command, now),
        now=now,
        traceparent=snapshot.traceparent,
        request_id=snapshot.request_id,
        expected_lease=command.lease_token,
    )


def _intent_at_claim(command: LeasedCommand) -> Intent:
    snapshot = command.snapshot
    return Intent(
        id=command.intent_id,
        symbol=command.symbol,
        order_side=command.order_side,
        route_strategy=snapshot.route_strategy,
        spec=command.spec,
        quantity=command.quantity,
        status=command.status,
        filled_quantity=command.filled_quantity,
        average_fill_price=None,
        broker_order_id=None,
        reason_code=snapshot.reason_code,
        outcome=None,
        version=snapshot.version,
        created_at=command.created_at,
        updated_at=snapshot.updated_at,
        extended_hours=snapshot.extended_hours,
    )


def _progress_at_claim(command: LeasedCommand, now: datetime) -> Progress:
    return Progress(
        lease_token=command.lease_token,
        next_attempt_at=now,
        submit_started_at=command.now,
        accepted_at=None,
        attempts=command.attempts,
        open_actions=command.snapshot.open_actions,
        done_sequence=command.snapshot.done_sequence,
        absences=command.absences,
    )
