"""Lists that go back further than the page about risk: what controls refused, and how they were changed."""

from uuid import UUID

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from console.routes import common
from console.routes.accounts import find_account, require_session
from console.routes.risk import risk_page

bp = Blueprint("records", __name__)
_TEXT = {"type": "string"}
_ROWS = 50


@bp.before_request
def admit() -> None:
    require_session()


@bp.get("/console/accounts/<uuid:account_id>/risk/refusals")
@describe("Refusals", answers={200: None}, query=dict.fromkeys(("code", "symbol", "next_cursor"), _TEXT))
def show_refusals(account_id: UUID) -> ResponseReturnValue:
    find_account(account_id)
    chosen = {name: request.args.get(name, "").strip().upper() for name in ("code", "symbol")}
    cursor = request.args.get("next_cursor")
    page = common.api().get(f"/v1/accounts/{account_id}/refusals", limit=_ROWS, next_cursor=cursor, **chosen)
    return risk_page("refusals.html", account_id, None, page["data"], page=page, chosen=chosen)


@bp.get("/console/accounts/<uuid:account_id>/risk/history")
@describe("Changes of controls", answers={200: None}, query=dict.fromkeys(("symbol", "next_cursor"), _TEXT))
def show_history(account_id: UUID) -> ResponseReturnValue:
    find_account(account_id)
    chosen = {"symbol": request.args.get("symbol", "").strip().upper()}
    path, cursor = f"/v1/controls/accounts/{account_id}/history", request.args.get("next_cursor")
    page = common.api().get(path, limit=_ROWS, next_cursor=cursor, **chosen)
    return risk_page("history.html", account_id, None, page["data"], page=page, chosen=chosen)
