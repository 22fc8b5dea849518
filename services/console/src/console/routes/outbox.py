"""The accounts outbox: its four states, and the rows that failed, for those whom the API shows it."""

from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from chassis.outbox.explanations import MEANINGS
from chassis.problems import Problem
from console import outbox
from console.api import ApiProblem
from console.routes import common
from console.routes.accounts import account_page, head
from console.routes.forms import admit, if_allowed, question

bp = Blueprint("outbox", __name__)
bp.before_request(admit)
_TEXT = {"type": "string"}
_ROWS = 50
_LONGEST_ID = 19


@bp.get("/console/outbox")
@describe("The outbox", answers={200: None}, query={"redriven": _TEXT, "next_cursor": _TEXT})
def show_outbox() -> ResponseReturnValue:
    return _page()


@bp.post("/console/outbox/<row_id>/redrive")
def redrive_row(row_id: str) -> ResponseReturnValue:
    _check_id(row_id)
    head(None)
    text = (
        "It is copied into a new row, behind all others of its key, and stays in the list of those redriven. "
        "Repair the cause first: else the copy fails like it."
    )
    if page := question(f"Redrive row {row_id}?", text, f"Redrive row {row_id}"):
        return page
    try:
        common.api().send("POST", f"/v1/accounts/outbox/failed/{row_id}/redrive")
    except ApiProblem as refusal:
        return _page(refusal)
    return common.go_to("/console/outbox")


def _page(refusal: ApiProblem | None = None) -> Response:
    head(None)
    report = if_allowed(lambda: common.api().get("/v1/accounts/outbox/health"))
    shown: dict[str, Any] = {"report": report, "refusal": refusal, "now": datetime.now(UTC).isoformat()}
    if report:
        states = outbox.states(report, MEANINGS)
        shown |= {"states": states, "unanswered": outbox.unanswered(report), **_failed()}
    return account_page("outbox.html", None, refusal.status if refusal else 200, **shown)


def _failed() -> dict[str, Any]:
    """Rows that need somebody, or those that were redriven; None where the health is shown and the rows are not."""
    redriven = request.args.get("redriven") == "true"
    query = {"redriven": str(redriven).lower(), "next_cursor": request.args.get("next_cursor"), "limit": _ROWS}
    rows = if_allowed(lambda: common.api().get("/v1/accounts/outbox/failed", **query))
    return {"failed": rows, "redriven": redriven}


def _check_id(row_id: str) -> None:
    """What no row has for its number goes into no address of the API."""
    if not (row_id.isascii() and row_id.isdecimal() and len(row_id) <= _LONGEST_ID):
        raise Problem(404)
