"""Risk: the trading state with its switch, limits and how much of them is used, symbols, refusals, changes."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from console import controls, limits, risk
from console.api import ApiProblem
from console.routes import common, trading
from console.routes.accounts import account_page, find_account, head, log_position, require_session

bp = Blueprint("risk", __name__)
_TEXT = {"type": "string"}
_CANCEL = "CANCEL"
_LIFTS = ("ACTIVE", "REDUCING")
"""States that may be less strict than the one there is."""
_REASON, _SYMBOLS = 2_000, 20_000
"""Longer than the API takes: it says so itself."""


@bp.before_request
def admit() -> None:
    require_session()
    common.check_origin()


@bp.get("/console/accounts/<uuid:account_id>/risk")
@describe("Risk", answers={200: None}, query={"operation": _TEXT})
def show_risk(account_id: UUID) -> ResponseReturnValue:
    return _page(account_id)


@bp.post("/console/accounts/<uuid:account_id>/risk")
def change_state(account_id: UUID) -> ResponseReturnValue:
    account, state = find_account(account_id), common.field("state")
    change = _state_change(account, state, common.field("reason", _REASON))
    if question := trading.question(account, change.words):
        return question
    try:
        switch = _set_state(account_id, state, change)
    except ApiProblem as refusal:
        return _page(account_id, refusal)
    operation = switch.get("bulk_operation_id")
    return common.go_to(f"/console/accounts/{account_id}/risk{f'?operation={operation}' if operation else ''}")


def _state_change(account: dict[str, Any], state: str, reason: str) -> controls.Change:
    """Orders are counted for the question alone: a halt waits for nothing that it does not need."""
    if state != _CANCEL:
        return controls.set_state(state, reason)
    count = risk.count_open_orders(common.api(), account["id"]) if trading.asks(account) else None
    return controls.halt_and_cancel(count, reason)


def _set_state(account_id: UUID, state: str, change: controls.Change) -> dict[str, Any]:
    """A halt is never refused because somebody else changed the state; whatever lifts one is."""
    version = common.field("version") if state in _LIFTS else ""
    if state in _LIFTS and not version:
        risk.require_no_switch(common.api(), account_id)
    switch: dict[str, Any] = risk.apply(common.api(), account_id, change, version)
    return switch


@bp.get("/console/accounts/<uuid:account_id>/risk/limits")
def show_limits(account_id: UUID) -> ResponseReturnValue:
    find_account(account_id)
    found = risk.account_limits(common.api(), account_id) or {}
    return _limits_page(account_id, found, {name: limits.typed(value) for name, value in found.items()})


@bp.post("/console/accounts/<uuid:account_id>/risk/limits")
def change_limits(account_id: UUID) -> ResponseReturnValue:
    account, given = find_account(account_id), limits.read(lambda name: common.field(name, _SYMBOLS), limits.LIMITS)
    before = risk.account_limits(common.api(), account_id) if trading.asks(account) else None
    change = controls.set_limits(None, given, limits.set_values(before))
    if common.field("step") == "remove":
        change = controls.remove_limits(None)
    if question := trading.question(account, change.words):
        return question
    try:
        risk.apply(common.api(), account_id, change, common.field("version"))
    except ApiProblem as refusal:
        return _limits_page(account_id, {"version": common.field("version")}, dict(request.form), refusal)
    return common.go_to(f"/console/accounts/{account_id}/risk")


def _page(account_id: UUID, refusal: ApiProblem | None = None) -> Response:
    api, account = common.api(), find_account(account_id)
    after = log_position(account_id)
    found, refusals = risk.find_controls(api, account), risk.refusals(api, account_id, datetime.now(UTC))
    operation = risk.find_operation(api, account_id, request.args.get("operation", ""))
    is_beginning = "operation" in request.args and risk.was_just_halted(found, datetime.now(UTC))
    rows = [*refusals["latest"], *(found["history"] + [*found["changes"].values()] if found else ())]
    values: dict[str, Any] = {
        "controls": found,
        "refusals": refusals,
        "operation": operation,
        "is_canceling": operation is not None or is_beginning,
        "states": controls.STATES,
    }
    return risk_page("risk.html", account_id, refusal, rows, **values, after=after)


def _limits_page(
    account_id: UUID, found: dict[str, Any], drawn: dict[str, str], refusal: ApiProblem | None = None
) -> Response:
    values: dict[str, Any] = {"limit_fields": limits.LIMITS, "drawn": drawn, "control": found}
    return risk_page("limits.html", account_id, refusal, (), **values)


def risk_page(
    template: str, account_id: UUID, refusal: ApiProblem | None, rows: Iterable[Mapping[str, Any]], **values: Any
) -> Response:
    """A page about controls, with the names of keys in its rows and whether the person may change them, too."""
    me = head(account_id)["me"]
    shown: dict[str, Any] = {
        "names": risk.key_names(common.api(), me, rows),
        "can_edit": me["role"] == "admin",
        "refusal": refusal,
        "title_of": controls.title,
        "difference": controls.difference,
    }
    return account_page(template, account_id, refusal.status if refusal else 200, **shown, **values)
