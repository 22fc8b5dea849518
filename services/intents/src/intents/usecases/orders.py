"""Listing an account's intents as orders."""

from collections.abc import Callable
from typing import NamedTuple

from intents import model, store
from intents.usecases.deps import Deps
from intents.usecases.reads import STATEMENT_LIMIT_MS, Reader, visible

CANDIDATES = 1_000
"""How many rows a page passes over at most where no index has exactly those that are wanted."""


class OrderQuery(NamedTuple):
    wanted: model.OrderFilter
    after: model.OrderKey | None
    limit: int


class OrderPage(NamedTuple):
    orders: list[model.Order]
    last: model.OrderKey | None
    """The key after which the next page begins; None when there is none."""


def candidates(wanted: model.OrderFilter | model.RefusalFilter, limit: int) -> int:
    """How many keys a page reads at most."""
    return limit + 1 if wanted.is_exact else max(limit + 1, CANDIDATES)


def list_orders(deps: Deps, reader: Reader, parse_query: Callable[[], OrderQuery]) -> OrderPage:
    """A page of orders. It may hold fewer than its limit, even none, and have a next one all the same."""
    with deps.engine.begin() as tx:
        store.limit_statements(tx, STATEMENT_LIMIT_MS)
        account = visible(tx, reader)
        wanted, after, limit = parse_query()
        most = candidates(wanted, limit)
        keys = store.order_keys(tx, account.id, wanted, after, most)
        found = store.orders(tx, account.id, wanted, keys, limit + 1)
    if len(found) > limit:
        return OrderPage(found[:limit], found[limit - 1].key)
    return OrderPage(found, keys[-1] if len(keys) == most else None)
