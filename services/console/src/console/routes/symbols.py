"""One symbol: its switch, its trading window, its limits, and who changed them."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from chassis.problems import Problem
from console import controls, limits, risk
from console.api import ApiProblem
from console.routes import common, trading
from console.routes.accounts import find_account, require_session
from console.routes.risk import risk_page

bp = Blueprint("symbols", __name__)
_TEXT = {"type": "string"}
_SYMBOL = "/console/accounts/<uuid:account_id>/risk/symbols/<path:symbol>"


@bp.before_request
def admit() -> None:
    require_session()
    common.check_origin()


@bp.get("/console/accounts/<uuid:account_id>/risk/symbols")
@describe("Go to a symbol", answers={303: None}, query={"symbol": _TEXT})
def find_symbol(account_id: UUID) -> ResponseReturnValue:
    find_account(account_id)
    symbol = risk.symbol_of(request.args.get("symbol", ""))
    return common.go_to(f"/console/accounts/{account_id}/risk/symbols/{symbol}")


@bp.get(_SYMBOL)
def show_symbol(account_id: UUID, symbol: str) -> ResponseReturnValue:
    return _page(account_id, risk.symbol_of(symbol))


@bp.post(_SYMBOL)
def change_symbol(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name, account = risk.symbol_of(symbol), find_account(account_id)
    change = _change(name)
    if common.field("step") == "limits" and trading.asks(account):
        before = risk.symbol_limits(common.api(), account_id, name)
        change = _limits(name, limits.set_values(before))
    if question := trading.question(account, change.words):
        return question
    try:
        risk.apply(common.api(), account_id, change, common.field("version"))
    except ApiProblem as refusal:
        return _page(account_id, name, refusal)
    where = "" if common.field("back") == "risk" else f"/symbols/{name}"
    return common.go_to(f"/console/accounts/{account_id}/risk{where}")


def _change(name: str) -> controls.Change:
    wanted = _CHANGES.get(common.field("step"))
    if wanted is None:
        raise Problem(400, "bad_request", "This form does nothing that is known here.")
    return wanted(name)


def _switch(name: str, *, is_off: bool) -> controls.Change:
    return controls.switch_symbol(name, common.field("reason", 2_000), is_off=is_off)


def _window(name: str) -> controls.Change:
    return controls.set_window(name, *(common.field(part, 20) for part in ("start", "end", "stale")))


def _limits(name: str, before: Mapping[str, Any] | None = None) -> controls.Change:
    return controls.set_limits(name, limits.read(common.field, limits.OF_SYMBOLS), before)


_CHANGES: Mapping[str, Callable[[str], controls.Change]] = {
    "enable": lambda name: _switch(name, is_off=False),
    "disable": lambda name: _switch(name, is_off=True),
    "remove_switch": controls.remove_switch,
    "window": _window,
    "remove_window": controls.remove_window,
    "limits": _limits,
    "remove_limits": controls.remove_limits,
}


def _page(account_id: UUID, name: str, refusal: ApiProblem | None = None) -> Response:
    found = risk.symbol(common.api(), find_account(account_id), name)
    drawn = {name: limits.typed(value) for name, value in (found["limits"] or {}).items()}
    typed = dict(request.form) if refusal else {}
    values: dict[str, Any] = {"limit_fields": limits.OF_SYMBOLS, "drawn": drawn | typed, "typed": typed}
    rows = [*found["history"], *found["changes"].values()]
    return risk_page("symbol.html", account_id, refusal, rows, **found, **values)
