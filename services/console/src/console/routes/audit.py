"""The statement of an account: downloaded, and verified by the browser.

That finds what was altered in a file. The verifier and the keys come from this server: whoever distrusts it uses
`tip verify`, with keys that were saved before.
"""

from uuid import UUID

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from console.routes import downloads
from console.routes.accounts import account_page, find_account
from console.routes.forms import admit

bp = Blueprint("audit", __name__)
bp.before_request(admit)
_TEXT = {"type": "string"}
_PERIOD = dict.fromkeys(("from", "to"), _TEXT)


@bp.get("/console/accounts/<uuid:account_id>/audit")
@describe("The audit of an account", answers={200: None}, query=_PERIOD)
def show_audit(account_id: UUID) -> ResponseReturnValue:
    return account_page("audit.html", account_id, period=_period())


@bp.get("/console/accounts/<uuid:account_id>/statement")
@describe("The statement of an account", answers={200: None}, query=_PERIOD)
def download_statement(account_id: UUID) -> ResponseReturnValue:
    account = find_account(account_id)
    return downloads.passed_on(
        f"/v1/accounts/{account['id']}/statement", f"statement-{account['id']}.jsonl", _moments()
    )


def _period() -> dict[str, str]:
    return {name: request.args.get(name, "").strip() for name in _PERIOD}


def _moments() -> dict[str, str]:
    """A day is the moment at which it begins, in UTC; whatever else was given is for the API to judge."""
    return {name: f"{day}T00:00:00Z" if len(day) == len("2026-01-31") else day for name, day in _period().items()}
