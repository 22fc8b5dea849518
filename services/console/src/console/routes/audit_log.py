"""The audit log of the organization: who changed what, from what to what."""

from typing import Any

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from console.administration import AUDIT_TYPES, changes
from console.routes import common, downloads
from console.routes.accounts import account_page
from console.routes.forms import admit, if_allowed, organization_id

bp = Blueprint("audit_log", __name__)
bp.before_request(admit)
_FILTERS = ("type", "target", "actor")
_TEXT = {"type": "string"}
_QUERY = dict.fromkeys(_FILTERS, _TEXT)
_ROWS = 50


@bp.get("/console/audit-log")
@describe("The audit log", answers={200: None}, query={**_QUERY, "next_cursor": _TEXT})
def show_audit_log() -> ResponseReturnValue:
    path, chosen = f"/v1/organizations/{organization_id()}/audit-entries", _chosen()
    cursor = request.args.get("next_cursor")
    page = if_allowed(lambda: common.api().get(path, limit=_ROWS, next_cursor=cursor, **chosen))
    shown: dict[str, Any] = {"page": page, "chosen": chosen, "types": AUDIT_TYPES, "changes": changes}
    return account_page("audit_log.html", None, **shown)


@bp.get("/console/audit-log/export")
@describe("The audit log as a file", answers={200: None}, query=_QUERY)
def export_audit_log() -> ResponseReturnValue:
    organization = organization_id()
    return downloads.passed_on(
        f"/v1/organizations/{organization}/audit-entries/export", f"audit-log-{organization}.jsonl", _chosen()
    )


def _chosen() -> dict[str, str]:
    return {name: request.args.get(name, "").strip() for name in _FILTERS}
