"""Credentials of an account. A secret goes through to the API and is in no page, log or session of ours.

On a live account the forms themselves hold the question, because one that comes after would have to repeat the secret.
"""

from typing import Any
from uuid import UUID

from flask import Blueprint, Response
from flask.typing import ResponseReturnValue

from console import administration
from console.api import ApiProblem
from console.routes import common
from console.routes.accounts import account_page, find_account
from console.routes.administration import find_broker, settings_page
from console.routes.forms import admit, question, require_uuid

bp = Blueprint("credentials", __name__)
bp.before_request(admit)
UNCONFIRMED = ApiProblem(
    422, {"code": "unconfirmed", "detail": "This account is live: tick that you mean it, and fill in the secret again."}
)


@bp.post("/console/accounts/<uuid:account_id>/credentials")
def add_credential(account_id: UUID) -> ResponseReturnValue:
    account, label = find_account(account_id), common.field("label")
    try:
        _check_confirmed(account)
        body = {"label": label, "secret": _given_secret(account["broker"])}
        common.api().send("POST", f"/v1/accounts/{account_id}/credentials", body)
    except ApiProblem as refusal:
        return settings_page(account_id, refusal, label=label)
    return common.go_to(f"/console/accounts/{account_id}/settings")


@bp.get("/console/accounts/<uuid:account_id>/credentials/<uuid:credential_id>")
def show_credential(account_id: UUID, credential_id: UUID) -> ResponseReturnValue:
    return _page(account_id, credential_id)


@bp.post("/console/accounts/<uuid:account_id>/credentials/<uuid:credential_id>/rotate")
def rotate_secret(account_id: UUID, credential_id: UUID) -> ResponseReturnValue:
    account, path = find_account(account_id), _path(account_id, credential_id)
    try:
        _check_confirmed(account)
        body = {"secret": _given_secret(account["broker"])}
        common.api().at_version(common.field("version")).send("PUT", f"/v1{path}/secret", body)
    except ApiProblem as refusal:
        return _page(account_id, credential_id, refusal)
    return common.go_to(f"/console{path}")


@bp.post("/console/accounts/<uuid:account_id>/credentials/<uuid:credential_id>/test")
def request_test(account_id: UUID, credential_id: UUID) -> ResponseReturnValue:
    """Have the broker tried with the stored secret; the page shows what comes of it."""
    find_account(account_id)
    path = _path(account_id, credential_id)
    try:
        common.api().send("POST", f"/v1{path}/test")
    except ApiProblem as refusal:
        return _page(account_id, credential_id, refusal)
    return common.go_to(f"/console{path}")


@bp.post("/console/accounts/<uuid:account_id>/credentials/<uuid:credential_id>/revoke")
def revoke_credential(account_id: UUID, credential_id: UUID) -> ResponseReturnValue:
    account, path = find_account(account_id), _path(account_id, credential_id)
    label = common.api().get(f"/v1{path}")["label"]
    text = f"Its secret is destroyed. Without another credential {account['name']} cannot reach its broker."
    button = f"Revoke {label} of {account['environment'].upper()} {account['name']}"
    if page := question(f"Revoke {label}?", text, button, account_id):
        return page
    try:
        common.api().at_version(common.field("version")).send("DELETE", f"/v1{path}")
    except ApiProblem as refusal:
        return _page(account_id, credential_id, refusal)
    return common.go_to(f"/console/accounts/{account_id}/settings")


def _page(account_id: UUID, credential_id: UUID, refusal: ApiProblem | None = None) -> Response:
    account, path = find_account(account_id), _path(account_id, credential_id)
    shown: dict[str, Any] = {
        "credential": common.api().get(f"/v1{path}"),
        "broker": find_broker(account["broker"]),
        "meanings": administration.CREDENTIAL_MEANINGS,
        "test_meanings": administration.TEST_MEANINGS,
        "refusal": refusal,
    }
    return account_page("credential.html", account_id, refusal.status if refusal else 200, **shown)


def _given_secret(broker: str) -> dict[str, str]:
    """By the names that the broker gives its parts."""
    parts = (find_broker(broker) or {"credential": []})["credential"]
    values = {part["name"]: common.secret_field(f"secret.{part['name']}", part["longest"]) for part in parts}
    return administration.given_secret(parts, values)


def _check_confirmed(account: dict[str, Any]) -> None:
    if account["environment"] == "live" and common.field("confirmed") != "yes":
        raise UNCONFIRMED


def _path(account_id: UUID, credential_id: UUID) -> str:
    return f"/accounts/{account_id}/credentials/{require_uuid(credential_id)}"
