"""Full pages of listings in Alpaca's shapes, which the paper broker and the FIX gateway answer in too."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from tip_broker_alpaca import account
from tip_broker_alpaca.account import ACTIVITY_PAGE, PAGE

_BEGIN = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
_MOMENT = "2026-01-05T12:00:00Z"
_ORDER = {
    "id": "b1", "client_order_id": "tip-1", "status": "new", "symbol": "OPEN", "side": "buy", "type": "limit",
    "qty": "1", "filled_qty": "0", "filled_avg_price": None, "created_at": _MOMENT, "updated_at": _MOMENT,
    "submitted_at": _MOMENT,
}  # fmt: skip
_FILL = {"order_id": "b1", "qty": "1", "price": "2", "transaction_time": _MOMENT}


def _orders(number: int) -> bytes:
    last = _ORDER | {"submitted_at": (_BEGIN + timedelta(seconds=number)).isoformat()}
    return _listed([*[_ORDER] * (PAGE - 1), last])


def _fills(number: int) -> bytes:
    return _listed([_FILL | {"id": f"{number}::{row}"} for row in range(ACTIVITY_PAGE)])


def _listed(rows: list[Any]) -> bytes:
    return json.dumps(rows).encode()


FULL_PAGES: Mapping[str, Callable[[int], bytes]] = {"open_orders": _orders, "orders": _orders, "executions": _fills}


@contextmanager
def short_listings() -> Iterator[None]:
    """A listing without end is too long after a few pages."""
    with patch.object(account, "MOST_ROWS", 4 * PAGE):
        yield
