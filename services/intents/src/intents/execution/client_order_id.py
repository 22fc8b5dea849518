"""The client order id: how an order at the broker is recognized as that of one action, in Python and in SQL."""

import re
from uuid import UUID

PREFIX, DUPLICATE = "tip-", "#"
_OURS = re.compile(rf"{PREFIX}[0-9a-f]{{32}}")


def client_order_id(action_id: UUID) -> str:
    """A pure function of the action: every send of it, by any executor, is the same order."""
    return f"{PREFIX}{action_id.hex}"


def is_ours(given: str) -> bool:
    """Whether the platform has made this id, also if it knows no such action any more."""
    return _OURS.fullmatch(given) is not None


def duplicate(given: str, broker_order_id: str) -> str:
    """The key of a second order under one client order id."""
    return f"{given}{DUPLICATE}{broker_order_id}"


def is_duplicate(key: str) -> bool:
    return DUPLICATE in key


def of_action_sql(column: str) -> str:
    """`client_order_id` in SQL."""
    return f"'{PREFIX}' || replace({column}::text, '-', '')"


def of_key_sql(column: str) -> str:
    """The client order id of an order by its key, also of a duplicate."""
    return f"split_part({column}, '{DUPLICATE}', 1)"
