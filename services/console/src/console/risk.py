"""What may be traded on an account, how much of its limits is used, and what was refused: read, and changed."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID

from console import controls, limits, windows
from console.api import MOST, ApiProblem, Caller, PlatformAway

_SYMBOL = re.compile(r"[A-Z0-9][A-Z0-9._:/-]{0,31}", re.ASCII)
_LATEST = 10
_HISTORY = 99
_NOT_ENTITLED = "entitlement_required"
_BEGINS_WITHIN = timedelta(minutes=1)
NO_SWITCH: Mapping[str, Any] = {"trading_state": "ACTIVE", "reason": None, "version": None, "updated_at": None}


def symbol_of(text: str) -> str:
    """As the platform writes it. What is none is refused here: it would be a part of a path."""
    symbol = text.strip().upper()
    if not _SYMBOL.fullmatch(symbol):
        detail = "That is no symbol: up to 32 letters, digits and . _ : / - that begin with a letter or a digit."
        raise ApiProblem(422, {"code": "invalid", "detail": detail})
    return symbol


def find_controls(api: Caller, account: Mapping[str, Any]) -> dict[str, Any] | None:
    """Everything that an account's page shows of its controls; None if the organization may not read any."""
    try:
        return _controls(api, account)
    except ApiProblem as problem:
        if problem.code == _NOT_ENTITLED:
            return None
        raise


def _controls(api: Caller, account: Mapping[str, Any]) -> dict[str, Any]:
    path = _path(account["id"])
    history = api.get(f"{path}/history", limit=_HISTORY)["data"]
    counted = _find_counted(api, account["id"], limits.NO_SYMBOL, {"reference_price": "1"})
    found = api.find(f"{path}/limits")
    return {
        "switch": api.find(path) or NO_SWITCH,
        "organization_switch": api.find("/v1/controls/organization") or NO_SWITCH,
        "limits": found,
        "usages": limits.usages(found, _used_of_account(api, account["id"], counted)) if found else [],
        "counted_at": counted["at"] if counted else None,
        "open_orders": counted["facts"]["account_open_orders"] if counted else None,
        "symbols": _symbols(api.all(f"{path}/symbols"), account["time_zone"]),
        "history": history[:_LATEST],
        "changes": controls.last_changes(history),
    }


def count_open_orders(api: Caller, account_id: Any) -> int | None:
    """None if they cannot be counted at this moment."""
    counted = _find_counted(api, account_id, limits.NO_SYMBOL, _NO_PRICES)
    return int(counted["facts"]["account_open_orders"]) if counted else None


def require_no_switch(api: Caller, account_id: UUID) -> None:
    """For a form that was shown while there was none, and so has no version. Who may not read it may lift it."""
    try:
        found = api.find(_path(account_id))
    except ApiProblem as problem:
        if problem.code != _NOT_ENTITLED:
            raise
        return
    if found:
        raise ApiProblem(412, {"code": "precondition_failed", "detail": "The trading state was changed meanwhile."})


def account_limits(api: Caller, account_id: UUID) -> dict[str, Any] | None:
    found: dict[str, Any] | None = api.find(f"{_path(account_id)}/limits")
    return found


def symbol_limits(api: Caller, account_id: UUID, name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = api.find(f"{_path(account_id)}/symbols/{quote(name, safe='')}/limits")
    return found


def symbol(api: Caller, account: Mapping[str, Any], name: str) -> dict[str, Any]:
    """All controls of one symbol, with who changed them."""
    path = f"{_path(account['id'])}/symbols/{quote(name, safe='')}"
    history = api.get(f"{_path(account['id'])}/history", symbol=name, limit=_HISTORY)["data"]
    time, found = api.find(f"{path}/time"), api.find(f"{path}/limits")
    used = _used_of_symbol(api, account["id"], name) if found else {}
    return {
        "symbol": name,
        "manual": api.find(path),
        "time": time,
        "bar": _bar(time, account["time_zone"]) if time else None,
        "limits": found,
        "usages": limits.usages(found, used) if found else [],
        "history": history[:_LATEST],
        "changes": controls.last_changes(history),
    }


def refusals(api: Caller, account_id: UUID, now: datetime) -> dict[str, Any]:
    """Those of the last hour, by the code that comes first, and the newest of them."""
    since = (now - timedelta(hours=1)).isoformat()
    found = api.all(f"/v1/accounts/{account_id}/refusals", **{"from": since})
    groups = Counter(refusal["reasons"][0]["code"] for refusal in found).most_common()
    return {"groups": groups, "total": len(found), "is_all": len(found) < MOST, "latest": found[:_LATEST]}


def apply(api: Caller, account_id: UUID, change: controls.Change, version: str) -> Any:
    """Make the change, unless somebody else made one since the page with that version was shown."""
    return api.at_version(version).send(change.method, f"{_path(account_id)}{change.path}", change.body)


def find_operation(api: Caller, account_id: UUID, operation: str) -> dict[str, Any] | None:
    """How far the cancel of all open orders has come; None until it begins, and for what is no operation."""
    try:
        found: dict[str, Any] | None = api.find(f"/v1/accounts/{account_id}/bulk-operations/{UUID(operation)}")
    except ValueError:
        return None
    return found


def was_just_halted(found: Mapping[str, Any] | None, now: datetime) -> bool:
    """Whether a cancel of all open orders may be on its way to the service that carries it out."""
    switch = found["switch"] if found else NO_SWITCH
    if switch["trading_state"] != "HALTED":
        return False
    return now - datetime.fromisoformat(switch["updated_at"]) < _BEGINS_WITHIN


def key_names(api: Caller, me: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Of API keys, by id, if one of them did what a row is about; only admins may know them."""
    if me["role"] != "admin" or all(row["actor"]["type"] != "api_key" for row in rows):
        return {}
    return {key["id"]: key["name"] for key in api.all("/v1/api-keys")}


_NO_PRICES = {"reference_price": "1", "other_exposure": "0"}
"""Facts that a preview would otherwise wait for, where only counts are wanted of it."""


def _counted(api: Caller, account_id: Any, symbol: str, facts: Mapping[str, str]) -> dict[str, Any]:
    """The facts that a submit would be decided by at this moment."""
    payload = {"symbol": symbol, "order_side": "BUY", "spec": {"Market": {"quantity": "1"}}}
    body = {"command": {"type": "CREATE", "payload": payload}, "facts": facts}
    answer: dict[str, Any] = api.send("POST", f"{_path(account_id)}/preview", body)
    return answer


def _find_counted(api: Caller, account_id: Any, symbol: str, facts: Mapping[str, str]) -> dict[str, Any] | None:
    """The same; None if they cannot be counted at this moment, which leaves the rest of a page to be shown."""
    try:
        return _counted(api, account_id, symbol, facts)
    except (ApiProblem, PlatformAway):
        return None


def _used_of_account(api: Caller, account_id: Any, counted: Mapping[str, Any] | None) -> limits.Used:
    return limits.used_of_account(counted["facts"], _positions(api, account_id)) if counted else limits.NOT_COUNTED


def _used_of_symbol(api: Caller, account_id: Any, name: str) -> limits.Used:
    counted = _find_counted(api, account_id, name, _NO_PRICES)
    if counted is None:
        return limits.NOT_COUNTED
    price = [held["last_price"] for held in _positions(api, account_id) if held["symbol"] == name]
    return limits.used_of_symbol(counted["facts"], price[0] if price else None)


def _positions(api: Caller, account_id: Any) -> list[dict[str, Any]]:
    return list(api.get(f"/v1/accounts/{account_id}/positions")["data"])


def _symbols(found: Iterable[Mapping[str, Any]], zone: str) -> list[dict[str, Any]]:
    """Those that are switched off first."""
    shown = [{**row, "bar": _bar(row["time"], zone), "limit_count": _limit_count(row["limits"])} for row in found]
    return sorted(shown, key=lambda row: (not (row["manual"] or {}).get("manually_disabled"), row["symbol"]))


def _bar(time: Mapping[str, Any] | None, zone: str) -> windows.Bar | None:
    """None where no hours are set: a control may be about stale orders alone."""
    if not time or not (time.get("trading_start") or time.get("trading_end")):
        return None
    return windows.bar(time.get("trading_start"), time.get("trading_end"), zone, datetime.now(UTC))


def _limit_count(control: Mapping[str, Any] | None) -> int:
    return sum((control or {}).get(limit.name) is not None for limit in limits.OF_SYMBOLS)


def _path(account_id: Any) -> str:
    return f"/v1/controls/accounts/{account_id}"
