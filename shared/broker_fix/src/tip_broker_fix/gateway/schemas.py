"""JSON and queries in. Whatever is not as agreed is refused before it is looked at further."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tip_broker_fix.gateway import tags
from tip_broker_fix.gateway.orders import Order
from tip_broker_fix.gateway.usecases import Amend

MOST_ROWS = 500
_WORD = re.compile(r"[!-~]{1,64}")
_CLIENT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadRequest(Exception):
    """What cannot be meant. Its message is ours, never the caller's words."""


def body(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise BadRequest("the body must be JSON") from None
    if not isinstance(found, dict):
        raise BadRequest("the body must be an object")
    return found


def new_order(account: str, given: Mapping[str, Any]) -> Order:
    return Order(
        client_order_id=_text(given, "client_order_id", _CLIENT_ID),
        account=account,
        symbol=_text(given, "symbol", _WORD),
        side=_choice(given, "side", tags.SIDES),
        kind=_choice(given, "type", tags.KINDS),
        time_in_force=_choice(given, "time_in_force", tags.TIMES_IN_FORCE),
        quantity=_amount(given, "qty") or Decimal(0),
        limit_price=_amount(given, "limit_price", required=False),
        stop_price=_amount(given, "stop_price", required=False),
        destination=_text(given, "destination", _WORD) if given.get("destination") is not None else None,
        created_at=_EPOCH,
        updated_at=_EPOCH,
    )


def amend(account: str, replaces: str, given: Mapping[str, Any]) -> Amend:
    return Amend(
        account,
        replaces,
        _text(given, "client_order_id", _CLIENT_ID),
        _amount(given, "qty") or Decimal(0),
        _choice(given, "time_in_force", tags.TIMES_IN_FORCE),
        _amount(given, "limit_price", required=False),
        _amount(given, "stop_price", required=False),
    )


def order_id(text: str) -> str:
    return text if _CLIENT_ID.fullmatch(text) else ""


def limit(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, str(MOST_ROWS))
    return min(MOST_ROWS, max(1, int(text))) if re.fullmatch(r"[0-9]{1,6}", text) else MOST_ROWS


def after(query: Mapping[str, str]) -> datetime | None:
    text = query.get("after")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest("after must be a time") from None
    if moment.tzinfo is None:
        raise BadRequest("after must have a zone")
    return moment


def position(query: Mapping[str, str]) -> int:
    text = query.get("page_token", "0").partition("::")[0]
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise BadRequest("page_token must be an id of the page before")
    return int(text)


def _text(given: Mapping[str, Any], name: str, form: re.Pattern[str]) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not form.fullmatch(value):
        raise BadRequest(f"{name} is not valid")
    return value


def _choice(given: Mapping[str, Any], name: str, choices: Mapping[str, str]) -> str:
    value = given.get(name)
    if not isinstance(value, str) or value not in choices:
        raise BadRequest(f"{name} must be one of {', '.join(choices)}")
    return value


def _amount(given: Mapping[str, Any], name: str, *, required: bool = True) -> Decimal | None:
    value = given.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value) or not Decimal(value):
        raise BadRequest(f"{name} must be a decimal above zero, as text")
    return Decimal(value)
