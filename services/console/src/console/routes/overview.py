"""Overview: the last hour of an account, and what waits at this moment."""

from datetime import UTC, datetime
from uuid import UUID

from flask import Blueprint
from flask.typing import ResponseReturnValue

from console import overview
from console.routes import common
from console.routes.accounts import account_page, find_account, require_session

bp = Blueprint("overview", __name__)


@bp.before_request
def admit() -> None:
    require_session()


@bp.get("/console/accounts/<uuid:account_id>/overview")
def show_overview(account_id: UUID) -> ResponseReturnValue:
    find_account(account_id)
    now = datetime.now(UTC)
    found = overview.read(common.api(), account_id, now)
    return account_page("overview.html", account_id, now=now.isoformat(), **found)
