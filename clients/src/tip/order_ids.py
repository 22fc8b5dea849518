"""Orders by the beginning of their id."""

import re
from itertools import islice
from typing import TYPE_CHECKING

from tip.exits import WRONG_USAGE, Failure

if TYPE_CHECKING:
    from tip_client import Client

NEWEST = 1000
_WHOLE = 36
_PAGE = 500
_PREFIX = re.compile(r"[0-9a-f-]{4,35}", re.ASCII)


def intent_id_of(client: "Client", text: str) -> str:
    """The whole id; a prefix is looked for among the newest orders, and must be that of one alone."""
    prefix = text.lower()
    if len(prefix) >= _WHOLE:
        return prefix
    if not _PREFIX.fullmatch(prefix):
        raise Failure(f"{text!r} is no id of an order", WRONG_USAGE, hint="give at least its first four characters")
    newest = islice(client.orders(newest_first=True, page_size=_PAGE), NEWEST)
    return chosen(prefix, [order.intent_id for order in newest if order.intent_id.startswith(prefix)])


def chosen(prefix: str, found: list[str]) -> str:
    if not found:
        hint = "`tip orders` lists them; an older one needs its whole id"
        raise Failure(
            f"none of the newest {NEWEST} orders has an id that begins with {prefix!r}", code="not_found", hint=hint
        )
    if len(found) > 1:
        raise Failure(
            f"{len(found)} orders have an id that begins with {prefix!r}", WRONG_USAGE, hint="give more of it"
        )
    return found[0]
