"""What limits and the state REDUCING count, by the function that previews use too."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

import control_rules
from intents import model
from intents.store.statement import Row, Statement, Transaction

ORDER_FACTS = Statement(
    "intents_order_facts",
    ("uuid[]", "text[]", "text[]", "uuid[]", "boolean[]", "interval"),
    """
    SELECT query.place, found.*,
           (SELECT last_sequence FROM intents.account_head head WHERE head.account_id = query.account_id)
    FROM unnest($1, $2, $3, $4, $5) WITH ORDINALITY query (account_id, symbol, order_side, intent_id, exposure, place)
    CROSS JOIN LATERAL intents_api.order_facts(query.account_id, query.symbol, query.order_side, query.intent_id, NULL,
                                               $6, query.exposure) found
    """,
)


class OrderQuery(NamedTuple):
    """An order whose facts are to be completed. The intent among them is left out of what is open."""

    facts: model.SubmitFacts
    symbol: str
    order_side: str


def with_order_facts(
    tx: Transaction,
    facts: model.SubmitFacts,
    symbol: str,
    order_side: str,
    price_max_age: timedelta = control_rules.PRICE_MAX_AGE,
) -> model.SubmitFacts:
    """The facts with what limits and the state REDUCING count, as it stands now."""
    return with_order_facts_many(tx, [OrderQuery(facts, symbol, order_side)], price_max_age)[0]


def with_order_facts_many(
    tx: Transaction, queries: Sequence[OrderQuery], price_max_age: timedelta = control_rules.PRICE_MAX_AGE
) -> list[model.SubmitFacts]:
    """The same for many orders, in one read. What is about no account that can be read stays as it is."""
    values = (
        [str(query.facts.account.id) if query.facts.account else None for query in queries],
        [query.symbol for query in queries],
        [query.order_side for query in queries],
        [str(query.facts.intent.id) if query.facts.intent else None for query in queries],
        [needs_exposure(query.facts.controls) for query in queries],
        price_max_age,
    )
    rows = {row.place: row for row in tx.read(ORDER_FACTS, values)}
    return [_completed(query.facts, rows.get(place), price_max_age) for place, query in enumerate(queries, 1)]


def needs_exposure(controls: control_rules.Facts | None) -> bool:
    """Whether a limit counts what the account holds and has open in other symbols."""
    limits = controls.account_limits if controls else None
    return limits is not None and limits.max_gross_exposure is not None


def _completed(facts: model.SubmitFacts, row: Row | None, price_max_age: timedelta) -> model.SubmitFacts:
    if row is None or facts.controls is None:
        return facts
    counted = control_rules.order_facts_from_row(row._asdict(), facts.controls.time_zone)
    controls = replace(facts.controls, **counted, price_max_age=price_max_age)
    return replace(facts, now=row.now, has_order_facts=True, last_sequence=row.last_sequence, controls=controls)
