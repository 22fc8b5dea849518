"""What the account holds and what that is worth, each figure with its age and where it comes from."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from flask import Blueprint
from flask.typing import ResponseReturnValue

from console.api import ApiProblem
from console.routes import common
from console.routes.accounts import account_page, find_account, log_position, require_session
from console.routes.filters import moment

bp = Blueprint("holdings", __name__)
_STALE_AFTER = timedelta(minutes=5)


@bp.before_request
def admit() -> None:
    require_session()
    common.check_origin()


@bp.get("/console/accounts/<uuid:account_id>/positions")
def show_positions(account_id: UUID) -> ResponseReturnValue:
    return _page(account_id)


@bp.post("/console/accounts/<uuid:account_id>/refresh")
def refresh_account(account_id: UUID) -> ResponseReturnValue:
    """Have the account read at its broker now."""
    find_account(account_id)
    try:
        common.api().send("POST", f"/v1/accounts/{account_id}/refresh")
    except ApiProblem as refusal:
        return _page(account_id, refusal)
    return common.go_to(f"/console/accounts/{account_id}/positions")


def _page(account_id: UUID, refusal: ApiProblem | None = None) -> ResponseReturnValue:
    api, path = common.api(), f"/v1/accounts/{account_id}"
    find_account(account_id)
    after = log_position(account_id)
    held = [position for position in api.get(f"{path}/positions")["data"] if position["quantity"] != "0"]
    status = refusal.status if refusal else 200
    values: dict[str, Any] = {
        "positions": held,
        "balances": api.get(f"{path}/balances"),
        "is_stale": _is_stale,
        "refusal": refusal,
    }
    return account_page("positions.html", account_id, status, **values, after=after)


def _is_stale(text: str | None) -> bool:
    """Whether a figure is so old that it is greyed."""
    at = moment(text)
    return at is None or datetime.now(UTC) - at > _STALE_AFTER
