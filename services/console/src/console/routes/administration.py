"""Accounts are connected, renamed, disabled and closed here; their credentials are in `credentials.py`."""

from typing import Any
from uuid import UUID

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from chassis.problems import Problem
from console.administration import CREDENTIAL_MEANINGS
from console.api import ApiProblem
from console.controls import difference
from console.routes import common, trading
from console.routes.accounts import account_page, find_account, head
from console.routes.forms import admit, if_allowed, question

bp = Blueprint("administration", __name__)
bp.before_request(admit)
_TEXT = {"type": "string"}
_SETTINGS = ("name", "time_zone", "broker_account_id")


@bp.get("/console/connect")
@describe("Connect an account", answers={200: None}, query={"broker": _TEXT})
def show_connect() -> ResponseReturnValue:
    return _connect_page(request.args.get("broker", ""))


@bp.post("/console/connect")
def connect_account() -> ResponseReturnValue:
    """Make the account; its credential comes next, on its own page, so that no question ever repeats a secret."""
    broker, environment = common.field("broker"), common.field("environment")
    given = {name: common.field(name) for name in _SETTINGS}
    if environment == "live" and (page := _about_live(given["name"])):
        return page
    body = {"broker": broker, "environment": environment, **{name: value for name, value in given.items() if value}}
    try:
        made = common.api().send("POST", "/v1/accounts", body)
    except ApiProblem as refusal:
        return _connect_page(broker, given | {"environment": environment}, refusal)
    return common.go_to(f"/console/accounts/{made['id']}/settings")


@bp.get("/console/accounts/<uuid:account_id>/settings")
def show_settings(account_id: UUID) -> ResponseReturnValue:
    return settings_page(account_id)


@bp.post("/console/accounts/<uuid:account_id>/settings")
def change_account(account_id: UUID) -> ResponseReturnValue:
    account, given = find_account(account_id), {name: common.field(name) for name in _SETTINGS}
    body = given | {"broker_account_id": given["broker_account_id"] or None}
    return _changed(account_id, f"Change the settings: {difference(account, body)}", "PATCH", "", body)


@bp.post("/console/accounts/<uuid:account_id>/disable")
def disable_account(account_id: UUID) -> ResponseReturnValue:
    body = {"reason": common.field("reason", 500) or None}
    return _changed(account_id, "Disable: no new order is taken", "POST", "/disable", body)


@bp.post("/console/accounts/<uuid:account_id>/enable")
def enable_account(account_id: UUID) -> ResponseReturnValue:
    return _changed(account_id, "Enable: orders are taken again", "POST", "/enable", {})


@bp.post("/console/accounts/<uuid:account_id>/close")
def close_account(account_id: UUID) -> ResponseReturnValue:
    """Delete the account, at once or when its open orders are canceled."""
    account = find_account(account_id)
    text = (
        "Its credentials are destroyed, and everything under its address is gone, its statement too. Save that before."
    )
    if page := question(
        f"Close {account['name']}?", text, f"Close {account['environment'].upper()} {account['name']}", account_id
    ):
        return page
    query = {"cancel_open": "true"} if common.field("cancel_open") == "yes" else {}
    try:
        closing = common.api().at_version(common.field("version")).send("DELETE", f"/v1/accounts/{account_id}", **query)
    except ApiProblem as refusal:
        return settings_page(account_id, refusal)
    return common.go_to(f"/console/accounts/{account_id}/settings" if closing else "/console")


@bp.post("/console/accounts/<uuid:account_id>/test")
def test_connection(account_id: UUID) -> ResponseReturnValue:
    """Have the account read at its broker, with its credential."""
    find_account(account_id)
    try:
        common.api().send("POST", f"/v1/accounts/{account_id}/refresh")
    except ApiProblem as refusal:
        return settings_page(account_id, refusal)
    return common.go_to(f"/console/accounts/{account_id}/settings")


def settings_page(account_id: UUID, refusal: ApiProblem | None = None, **values: Any) -> Response:
    """Everything about an account but its orders."""
    api, account = common.api(), find_account(account_id)
    path = f"/v1/accounts/{account_id}"
    shown: dict[str, Any] = {
        "credentials": if_allowed(lambda: api.all(f"{path}/credentials")) or [],
        "balances": if_allowed(lambda: api.find(f"{path}/balances")) or {},
        "broker": find_broker(account["broker"]),
        "meanings": CREDENTIAL_MEANINGS,
        "refusal": refusal,
    }
    return account_page("settings.html", account_id, refusal.status if refusal else 200, **shown | values)


def find_broker(name: str) -> dict[str, Any] | None:
    """The broker as it describes itself; None if it is no longer installed."""
    found = [broker for broker in common.api().get("/v1/brokers")["data"] if broker["name"] == name]
    return found[0] if found else None


def _changed(account_id: UUID, what: str, method: str, action: str, body: dict[str, Any]) -> ResponseReturnValue:
    """Change the account; a live one asks again."""
    if page := trading.question(find_account(account_id), what):
        return page
    try:
        common.api().at_version(common.field("version")).send(method, f"/v1/accounts/{account_id}{action}", body)
    except ApiProblem as refusal:
        return settings_page(account_id, refusal)
    return common.go_to(f"/console/accounts/{account_id}/settings")


def _about_live(name: str) -> Response | None:
    text = "Orders on it are done with real money, as soon as it has a credential and the organization may trade live."
    return question("This account is live", text, f"Connect LIVE {name}")


def _connect_page(name: str, given: dict[str, str] | None = None, refusal: ApiProblem | None = None) -> Response:
    head(None)
    brokers = common.api().get("/v1/brokers")["data"]
    chosen = next((broker for broker in brokers if broker["name"] == name), None)
    if name and chosen is None:
        raise Problem(404)
    status = refusal.status if refusal else 200
    values: dict[str, Any] = {"brokers": brokers, "chosen": chosen, "given": given or {}, "refusal": refusal}
    return account_page("connect.html", None, status, **values)
