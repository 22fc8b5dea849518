"""Everything that deciding a submission needs, in one read."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self
from uuid import UUID

import control_rules
import tip_brokers
from chassis import keys
from chassis.authentication import KeyRow
from control_rules.rows import RULES_COLUMNS
from intents import model
from intents.store.backlog import BACKLOG
from intents.store.statement import Row, Statement, Transaction

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
    "extended_hours",
    "group_id",
    "group_role",
    "armed_at",
    "uncounted",
)
_ACCOUNT_COLUMNS = ("id", "organization_id", "environment", "broker", "disabled", "version")
_PRIOR_COLUMNS = ("request_hash", "intent_id", "action_id", "state", "created")


def aliased(table: str, prefix: str, columns: Sequence[str]) -> str:
    """The columns, each under a name that no other table's column has."""
    return ", ".join(f"{table}.{column} AS {prefix}_{column}" for column in columns)


def values_of(prefix: str, columns: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
    """Reads the columns that `aliased` has named, in the same order."""
    return attrgetter(*(f"{prefix}_{column}" for column in columns))


_COLUMNS = ", ".join(
    [
        "clock_timestamp() AS now",
        aliased("a", "account", _ACCOUNT_COLUMNS),
        "a.time_zone",
        aliased("k", "key", KeyRow._fields),
        aliased("d", "prior", _PRIOR_COLUMNS),
        *(f"r.{column}" for column in RULES_COLUMNS),
        aliased("i", "intent", INTENT_COLUMNS),
        "holder.id AS client_id_holder",
        f"{BACKLOG} AS backlog",
    ]
)
_account_values = values_of("account", ("id", "organization_id", "environment", "broker"))
_key_values = values_of("key", KeyRow._fields)
_prior_values = values_of("prior", _PRIOR_COLUMNS[1:])
_intent_values = values_of("intent", INTENT_COLUMNS)


def facts_of(query: str) -> str:
    """Selects the facts of one row with the columns prefix, account_id, symbol, intent_id, key and client_id.

    OFFSET 0 keeps the subquery apart: it runs once for each row, by index, however many there are. CASE, because
    behind row-level security Postgres looks nothing up by a coalesce: it takes it for a function that could leak.
    """
    symbol = f"CASE WHEN i.symbol IS NULL THEN {query}.symbol ELSE i.symbol END"
    return f"""
        SELECT {_COLUMNS}
        FROM (SELECT) one
        LEFT JOIN identity_api.usable_api_key k ON k.prefix = {query}.prefix
        LEFT JOIN accounts_api.account a ON a.id = {query}.account_id
        LEFT JOIN intents.intent i ON i.account_id = a.id AND i.id = {query}.intent_id
        LEFT JOIN intents.idempotency d ON d.account_id = a.id AND d.key = {query}.key
             AND d.created_at > now() - interval '{KEPT_HOURS} hours'
        LEFT JOIN intents.intent holder ON holder.account_id = a.id AND holder.client_id = {query}.client_id
        LEFT JOIN LATERAL controls_api.rules(a.organization_id, a.id, {symbol}) r
             ON a.id IS NOT NULL
        OFFSET 0
    """  # noqa: S608 - only our own column names


_FACTS = Statement(
    "intents_facts",
    ("text[]", "uuid[]", "text[]", "uuid[]", "text[]", "text[]"),
    f"""
    SELECT query.place, found.*
    FROM unnest($1, $2, $3, $4, $5, $6) WITH ORDINALITY
         query (prefix, account_id, symbol, intent_id, key, client_id, place)
    CROSS JOIN LATERAL ({facts_of("query")}) found
    """,  # noqa: S608 - only our own column names
)


class FactsQuery(NamedTuple):
    """What to load the facts of; `api_key` is None when the caller is authenticated already."""

    account_id: UUID | None
    symbol: str | None = None
    ref_intent_id: UUID | None = None
    idempotency_key: str | None = None
    api_key: str | None = None
    client_id: str | None = None

    @classmethod
    def of(cls, submission: model.Submission) -> Self:
        command, key = submission.command, submission.idempotency_key
        return cls(
            submission.account_id, command.symbol, command.ref_intent_id, key and key.key, client_id=command.client_id
        )


class LoadedFacts(NamedTuple):
    """The facts, and the API keys with the presented prefix: more than one is unlikely, not impossible."""

    facts: model.SubmitFacts
    keys: Sequence[KeyRow]


def load_facts(tx: Transaction, query: FactsQuery) -> LoadedFacts:
    return load_facts_many(tx, [query])[0]


def load_facts_many(tx: Transaction, queries: Sequence[FactsQuery]) -> list[LoadedFacts]:
    """The facts of each query, in one read."""
    values = (
        [query.api_key and keys.prefix(query.api_key) for query in queries],
        [_text(query.account_id) for query in queries],
        [query.symbol for query in queries],
        [_text(query.ref_intent_id) for query in queries],
        [query.idempotency_key for query in queries],
        [query.client_id for query in queries],
    )
    rows_of: list[list[Row]] = [[] for _ in queries]
    for row in tx.read(_FACTS, values):
        rows_of[row.place - 1].append(row)
    return [_loaded(rows) for rows in rows_of]


def _loaded(rows: Sequence[Row]) -> LoadedFacts:
    return LoadedFacts(facts_from(rows[0]), [KeyRow(*_key_values(row)) for row in rows if row.key_id is not None])


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def facts_from(row: Row) -> model.SubmitFacts:
    """The facts in a row with the columns of `facts_of`."""
    if row.account_organization_id is None:
        return model.SubmitFacts(row.now, None)
    return model.SubmitFacts(
        row.now,
        _account(row),
        intent_from(row) if row.intent_id is not None else None,
        model.PriorResult(bytes(row.prior_request_hash), *_prior_values(row)) if row.prior_request_hash else None,
        control_rules.facts_from_row(row._asdict()),
        client_id_holder=row.client_id_holder,
        backlog=row.backlog,
    )


def _account(row: Row) -> model.Account:
    described = tip_brokers.installed().get(row.account_broker)
    return model.Account(*_account_values(row))._replace(can=described.capabilities if described else None)


def intent_from(row: Row) -> model.Intent:
    """The intent in a row with INTENT_COLUMNS, aliased "intent"."""
    return to_intent(_intent_values(row))


def to_intent(values: Sequence[Any]) -> model.Intent:
    named = dict(zip(INTENT_COLUMNS, values, strict=True))
    return model.Intent(
        **named | {"spec": model.Spec.from_json(named["spec"]), "status": model.Status(named["status"])}
    )
