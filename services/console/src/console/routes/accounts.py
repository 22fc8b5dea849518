"""The accounts of the organization, and what every page of an account shows of them."""

from typing import Any
from uuid import UUID

from flask import Blueprint, Response, g
from flask.typing import ResponseReturnValue

from console.api import ApiProblem, Caller
from console.routes import common

bp = Blueprint("accounts", __name__)


@bp.before_request
def require_session() -> None:
    common.session()


@bp.get("/console")
def show_accounts() -> ResponseReturnValue:
    return account_page("accounts.html", None)


def account_page(template: str, account_id: UUID | None, status: int = 200, **values: Any) -> Response:
    """A page with the head that all have: the organization, the account and its environment, who is signed in."""
    return common.page(template, status, **head(account_id), **values)


def head(account_id: UUID | None) -> dict[str, Any]:
    """Read once for a request, although a page and its form may both want it."""
    if "head" not in g:
        api = common.api()
        me, accounts = api.get("/v1/users/me"), api.all("/v1/accounts")
        g.head = {"me": me, "organization": _organization(api, me), "accounts": accounts}
    return {**g.head, "account": _account(g.head["accounts"], account_id)}


def find_account(account_id: UUID) -> dict[str, Any]:
    found: dict[str, Any] = head(account_id)["account"]
    return found


def log_position(account_id: UUID) -> int:
    """The sequence after which everything is still to be seen: all that happened since the newest order.

    To be read before what a page shows, so that whatever comes meanwhile is replayed to it.
    """
    newest = common.api().get(f"/v1/accounts/{account_id}/orders", order="desc", limit=1)["data"]
    return int(newest[0]["last_action"]["sequence"]) if newest else 0


def _organization(api: Caller, me: dict[str, Any]) -> str:
    """Its name. Who is a member because a provider's token says so has no membership that would name it."""
    names = {membership["organization_id"]: membership["name"] for membership in me["memberships"]}
    own = me["organization_id"]
    if own is None or own in names:
        return str(names.get(own, "no organization"))
    return str(api.get(f"/v1/organizations/{own}")["name"])


def _account(accounts: list[dict[str, Any]], account_id: UUID | None) -> dict[str, Any] | None:
    if account_id is None:
        return None
    found = [account for account in accounts if account["id"] == str(account_id)]
    if not found:
        raise ApiProblem(404, {"code": "not_found", "detail": "There is no such account that you may see."})
    return found[0]
