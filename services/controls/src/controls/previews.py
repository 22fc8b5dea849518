"""What a submit would decide, by its facts and after the same wait for prices that it lacks."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from chassis import db
from chassis.polling import poll
from chassis.principals import Principal
from control_rules import Decision, KeyBounds, MissingPrices, evaluate, facts_from_row, missing_prices, with_spending
from controls import model, store
from controls.usecases import Deps, reading_scope


class _Key(NamedTuple):
    """The API key that requests the preview, and what it is bounded to: None also of other callers."""

    id: str
    bounds: KeyBounds | None

    @property
    def has_budget(self) -> bool:
        return self.bounds is not None and self.bounds.max_notional_per_day is not None


class Judgement(NamedTuple):
    """A decision, at which moment, and by which facts."""

    decision: Decision
    at: datetime
    facts: Mapping[str, Any]


def preview(deps: Deps, principal: Principal, account_id: UUID, wanted: model.Preview) -> Judgement:
    """What a submit would decide now, by its own facts unless the caller gives others."""
    with db.reading(deps.engine) as tx:
        reading_scope(tx, principal, account_id)
    bounds = KeyBounds.of(principal.bounds.symbols, principal.bounds.max_notional_per_day)
    key = _Key(principal.id, bounds)
    judgement = _judge(deps, account_id, wanted, key)
    again = _prices_came(deps, account_id, wanted, judgement)
    return _judge(deps, account_id, wanted, key) if again else judgement


def _judge(deps: Deps, account_id: UUID, wanted: model.Preview, key: _Key) -> Judgement:
    with db.reading(deps.engine) as tx:
        row = store.facts(tx, account_id, wanted, deps.price_max_age)
        spent = store.key_spending(tx, key.id, account_id, wanted.intent_id) if key.has_budget else None
    if row is None:
        raise model.AccountNotFound
    at: datetime = row["now"]
    given = {**row, **wanted.overrides(at)}
    bounds = with_spending(key.bounds, spent, at, row["time_zone"]) if key.bounds else None
    facts = replace(facts_from_row(given), price_max_age=deps.price_max_age, key_bounds=bounds)
    decision = evaluate(facts, wanted.completed(row["filled_quantity"]), at)
    return Judgement(decision, at, {**given, "day_start_equity": facts.day_start_equity})


def _prices_came(deps: Deps, account_id: UUID, wanted: model.Preview, judgement: Judgement) -> bool:
    """Whether prices were read that a submit would have waited for. No transaction is open meanwhile."""
    missing = missing_prices(judgement.decision, wanted.command)
    requested = _requested(deps, account_id, wanted, missing) if missing and wanted.at is None else []

    def still_missing() -> list[str]:
        with db.reading(deps.engine) as tx:
            return store.unpriced_symbols(tx, account_id, requested, deps.price_max_age, deps.quote_seconds)

    left = poll(still_missing, lambda symbols: not symbols, deps.quote_wait_seconds) if requested else []
    return len(left) < len(requested)


def _requested(deps: Deps, account_id: UUID, wanted: model.Preview, missing: MissingPrices) -> list[str]:
    """The symbols whose prices are read now: none instead of what the caller gives."""
    symbols = [] if "reference_price" in wanted.facts else [missing.symbol]
    with_exposure = missing.of_others and "other_exposure" not in wanted.facts
    with deps.engine.begin() as tx:
        unpriced = store.unpriced_symbols(
            tx, account_id, symbols, deps.price_max_age, deps.quote_seconds, with_exposure=with_exposure
        )
        return store.request_prices(tx, account_id, unpriced) if unpriced else []
