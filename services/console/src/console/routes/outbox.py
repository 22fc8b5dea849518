"""The accounts outbox in numbers, for those whom the API shows it."""

from typing import Any

from flask import Blueprint
from flask.typing import ResponseReturnValue

from console import outbox
from console.routes import common
from console.routes.accounts import account_page, head
from console.routes.forms import admit, if_allowed

bp = Blueprint("outbox", __name__)
bp.before_request(admit)


@bp.get("/console/outbox")
def show_outbox() -> ResponseReturnValue:
    head(None)
    report = if_allowed(lambda: common.api().get("/v1/accounts/outbox/health"))
    shown: dict[str, Any] = {"report": report}
    if report:
        shown |= {"states": outbox.states(report), "unanswered": outbox.unanswered(report), "failed": _failed(report)}
    return account_page("outbox.html", None, **shown)


def _failed(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in report["entries"] if entry["status"] == "failed"]
