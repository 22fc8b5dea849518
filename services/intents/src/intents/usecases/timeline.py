"""Reading the story of an intent."""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from intents import model, store
from intents.model.timeline import TimelineEntry, TimelineKey
from intents.usecases.deps import Deps
from intents.usecases.reads import STATEMENT_LIMIT_MS, Reader, visible


class TimelinePage(NamedTuple):
    entries: list[TimelineEntry]
    last: TimelineKey | None
    """The key after which the next page begins; None when there is none."""


def timeline(
    deps: Deps, reader: Reader, intent_id: UUID, parse_page: Callable[[], tuple[TimelineKey | None, int]]
) -> TimelinePage:
    with deps.engine.begin() as tx:
        store.limit_statements(tx, STATEMENT_LIMIT_MS)
        account = visible(tx, reader)
        after, limit = parse_page()
        found = store.timeline(tx, account.id, intent_id, after or store.TIMELINE_BEGINNING, limit + 1)
        if not found and store.latest(tx, account.id, intent_id) is None:
            raise model.IntentNotFound
    return TimelinePage(found[:limit], found[limit - 1].key if len(found) > limit else None)
