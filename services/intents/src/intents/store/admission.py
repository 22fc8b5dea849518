"""What a submit must know: one read."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

import control_rules
from chassis import keys, tenancy
from chassis.access import KeyRow
from control_rules.rows import RULES_COLUMNS
from intents import model
from intents.store.direct import Direct, Statement
from intents.store.statuses import TERMINAL_SQL

KEPT_HOURS = 24  # how long an idempotency key is remembered

INTENT_COLUMNS = (
    "id",
    "symbol",
    "order_side",
    "route_strategy",
    "spec",
    "quantity",
    "status",
    "filled_quantity",
    "average_fill_price",
    "broker_order_id",
    "reason_code",
    "outcome",
    "version",
    "created_at",
    "updated_at",
)
_EARLIER_COLUMNS = ("request_hash", "intent_id", "action_id", "state", "created")
_KEY_COLUMNS = KeyRow._fields


def _columns(of: str, names: Sequence[str]) -> str:
    return ", ".join(f"{of}.{name}" for name in names)


def _columns_of_facts() -> str:
    own = "clock_timestamp(), a.id, a.organization_id, a.environment, a.time_zone, a.disabled, a.version"
    joined = (("k", _KEY_COLUMNS), ("d", _EARLIER_COLUMNS), ("r", RULES_COLUMNS), ("i", INTENT_COLUMNS))
    return ", ".join([own, *(_columns(of, names) for of, names in joined)])


# OFFSET 0 makes it a question of its own for each of those asked, by index each time, however many there are.
_FACTS = Statement(
    "intents_facts",
    ("text[]", "uuid[]", "text[]", "uuid[]", "text[]"),
    f"""
    SELECT asked.place, found.*
    FROM unnest($1, $2, $3, $4, $5) WITH ORDINALITY asked (prefix, account_id, symbol, intent_id, key, place)
    CROSS JOIN LATERAL (
        SELECT {_columns_of_facts()}
        FROM (SELECT) one
        LEFT JOIN identity_api.api_key k ON k.prefix = asked.prefix AND NOT k.disabled AND NOT k.organization_disabled
             AND (k.expires_at IS NULL OR k.expires_at > now())
        LEFT JOIN accounts_api.account a ON a.id = asked.account_id
        LEFT JOIN intents.intent i ON i.account_id = a.id AND i.id = asked.intent_id
        LEFT JOIN intents.idempotency d ON d.account_id = a.id AND d.key = asked.key
             AND d.created_at > now() - interval '{KEPT_HOURS} hours'
        LEFT JOIN LATERAL controls_api.rules(a.organization_id, a.id, coalesce(i.symbol, asked.symbol)) r
             ON a.id IS NOT NULL
        OFFSET 0
    ) found
    """,  # noqa: S608 - only our own column names
)
_ACCOUNT = slice(2, 5)
_ACCOUNT_CONTROLS = slice(5, 8)
_KEY = slice(8, 8 + len(_KEY_COLUMNS))
_EARLIER = slice(_KEY.stop, _KEY.stop + len(_EARLIER_COLUMNS))
_RULES = slice(_EARLIER.stop, _EARLIER.stop + len(RULES_COLUMNS))
_INTENT = slice(_RULES.stop, _RULES.stop + len(INTENT_COLUMNS))
_CONTROL_NAMES = ("time_zone", "account_disabled", "account_version", *RULES_COLUMNS)


class Question(NamedTuple):
    """Of what the facts are wanted: `api_key` is None when the caller is known already."""

    account_id: UUID | None
    symbol: str | None = None
    ref_intent_id: UUID | None = None
    idempotency_key: str | None = None
    api_key: str | None = None


Known = tuple[model.Facts, list[KeyRow]]
"""Everything that deciding needs, and the API keys with the prefix: more than one is unlikely, not impossible."""


def facts(direct: Direct, question: Question) -> Known:
    return facts_of(direct, [question])[0]


def facts_of(direct: Direct, questions: Sequence[Question]) -> list[Known]:
    """The answer to each question, in one read: of whoever is served now, or else of those whose keys are presented."""
    presented = [one.api_key for one in questions if one.api_key]
    asked = (
        [one.api_key and keys.prefix(one.api_key) for one in questions],
        [_text(one.account_id) for one in questions],
        [one.symbol for one in questions],
        [_text(one.ref_intent_id) for one in questions],
        [one.idempotency_key for one in questions],
    )
    found: list[list[tuple[Any, ...]]] = [[] for _ in questions]
    with tenancy.serving_keys(map(keys.digest, presented)) if presented else nullcontext():
        rows_of_all = direct.read(_FACTS, asked)
    for row in rows_of_all:
        found[row[0] - 1].append(row)
    return [(_facts(rows[0]), [KeyRow(*row[_KEY]) for row in rows if row[_KEY.start] is not None]) for rows in found]


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _facts(row: tuple[Any, ...]) -> model.Facts:
    if row[_ACCOUNT.start] is None:
        return model.Facts(row[1], None)
    controls = dict(zip(_CONTROL_NAMES, (*row[_ACCOUNT_CONTROLS], *row[_RULES]), strict=True))
    return model.Facts(
        row[1],
        model.Account(*row[_ACCOUNT]),
        to_intent(row[_INTENT]) if row[_INTENT.start] is not None else None,
        model.Earlier(bytes(row[_EARLIER.start]), *row[_EARLIER][1:]) if row[_EARLIER.start] else None,
        control_rules.facts_from_row(controls),
    )


def to_intent(values: Sequence[Any]) -> model.Intent:
    named = dict(zip(INTENT_COLUMNS, values, strict=True))
    return model.Intent(
        **named | {"spec": model.Spec.from_json(named["spec"]), "status": model.Status(named["status"])}
    )


_ORDER_FACTS = Statement(
    "intents_order_facts",
    ("uuid", "text", "text", "uuid", "timestamptz"),
    f"""
    WITH recent AS (
        SELECT symbol, created_at FROM intents.action
        WHERE account_id = $1 AND created_at > $5 - interval '24 hours' AND type <> 'CANCEL'
    )
    SELECT count(*) FILTER (WHERE created_at > $5 - interval '60 seconds'), count(*),
           count(*) FILTER (WHERE symbol = $2 AND created_at > $5 - interval '60 seconds'),
           count(*) FILTER (WHERE symbol = $2),
           coalesce((SELECT quantity FROM intents.position WHERE account_id = $1 AND symbol = $2), 0),
           (SELECT coalesce(sum(greatest(quantity, CASE WHEN status IN ('PENDING_REPLACE', 'PENDING_CANCEL') THEN (
                SELECT (terms.value ->> 'quantity')::numeric FROM intents.action a, json_each(a.spec) terms
                WHERE a.account_id = i.account_id AND a.intent_id = i.id AND a.type = 'REPLACE'
                ORDER BY a.sequence DESC LIMIT 1) END) - filled_quantity), 0) FROM intents.intent i
            WHERE account_id = $1 AND symbol = $2 AND order_side = $3 AND id IS DISTINCT FROM $4
              AND status NOT IN ({TERMINAL_SQL})),
           (SELECT last_price FROM intents.position WHERE account_id = $1 AND symbol = $2)
    FROM recent
    """,  # noqa: S608 - a constant
)


def with_order_facts(direct: Direct, facts: model.Facts, symbol: str, order_side: str) -> model.Facts:
    """The facts with what limits and the state REDUCING ask for, as it stands now."""
    if facts.account is None or facts.controls is None:
        return facts
    values = (str(facts.account.id), symbol, order_side, facts.intent and str(facts.intent.id), facts.now)
    [row] = direct.read(_ORDER_FACTS, values)
    return replace(
        facts,
        controls=replace(
            facts.controls,
            account_orders=control_rules.OrderCounts(row[0], row[1]),
            symbol_orders=control_rules.OrderCounts(row[2], row[3]),
            position_quantity=row[4],
            open_quantity=row[5],
            reference_price=row[6],
        ),
    )
