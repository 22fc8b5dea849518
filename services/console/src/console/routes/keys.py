"""API keys of the organization. A new one is in the one page that answers its making, and in no other."""

from typing import Any
from uuid import UUID

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from console.administration import ENVIRONMENTS, PERMISSIONS, NewKey
from console.api import ApiProblem
from console.routes import common
from console.routes.accounts import account_page, head
from console.routes.forms import admit, if_allowed, question, require_uuid

bp = Blueprint("keys", __name__)
bp.before_request(admit)
_PAGE, _API = "/console/keys", "/v1/api-keys"
_TEXTS = ("name", "environment", "symbols", "max_notional_per_day", "expires_on")
_LONGEST_TEXT = 20_000
"""Of the symbols: five hundred of them, with commas between, and room for spaces."""


@bp.get(_PAGE)
def show_keys() -> ResponseReturnValue:
    return _list_page()


@bp.get(f"{_PAGE}/new")
def show_new_key() -> ResponseReturnValue:
    return _new_page(NewKey())


@bp.post(f"{_PAGE}/new")
def create_key() -> ResponseReturnValue:
    new = _given()
    text = f"Whoever has the key can do this on live accounts: {', '.join(new.permissions) or 'nothing'}."
    if new.environment == "live" and (page := question("This key is live", text, f"Create LIVE {new.name}")):
        return page
    head(None)  # not after the key was made: a page that fails then loses it
    try:
        made = common.api().send("POST", _API, new.body)
    except ApiProblem as refusal:
        return _new_page(new, refusal)
    return _key_page(made, key=made.pop("key"))


@bp.get(f"{_PAGE}/<uuid:key_id>")
def show_key(key_id: UUID) -> ResponseReturnValue:
    return _key_page(_found(key_id))


@bp.post(f"{_PAGE}/<uuid:key_id>/rename")
def rename_key(key_id: UUID) -> ResponseReturnValue:
    return _changed(key_id, {"name": common.field("name")})


@bp.post(f"{_PAGE}/<uuid:key_id>/disable")
def disable_key(key_id: UUID) -> ResponseReturnValue:
    page = _about_live(key_id, "Disable", "Whoever uses it is refused from now on. Open orders stay as they are.")
    return page or _changed(key_id, {"disabled": True})


@bp.post(f"{_PAGE}/<uuid:key_id>/enable")
def enable_key(key_id: UUID) -> ResponseReturnValue:
    return _about_live(key_id, "Enable", "Whoever has it can use it again.") or _changed(key_id, {"disabled": False})


@bp.post(f"{_PAGE}/<uuid:key_id>/delete")
def delete_key(key_id: UUID) -> ResponseReturnValue:
    key = _found(key_id)
    text = "Whoever uses it is refused from now on, and it cannot be brought back."
    if page := question(f"Delete {key['name']}?", text, f"Delete {key['environment'].upper()} {key['name']}"):
        return page
    common.api().send("DELETE", f"{_API}/{require_uuid(key_id)}")
    return common.go_to(_PAGE)


def _about_live(key_id: UUID, verb: str, text: str) -> Response | None:
    key = _found(key_id)
    title, button = f"{verb} {key['name']}?", f"{verb} LIVE {key['name']}"
    return question(title, text, button) if key["environment"] == "live" else None


def _changed(key_id: UUID, changes: dict[str, Any]) -> ResponseReturnValue:
    try:
        common.api().send("PATCH", f"{_API}/{require_uuid(key_id)}", changes)
    except ApiProblem as refusal:
        return _key_page(_found(key_id), refusal)
    return common.go_to(f"{_PAGE}/{key_id}")


def _found(key_id: UUID) -> dict[str, Any]:
    found: dict[str, Any] = common.api().get(f"{_API}/{require_uuid(key_id)}")
    return found


def _given() -> NewKey:
    texts = {name: common.field(name, _LONGEST_TEXT) for name in _TEXTS}
    return NewKey(**texts, permissions=request.form.getlist("permission"), accounts=request.form.getlist("account"))


def _list_page() -> Response:
    head(None)
    keys = if_allowed(lambda: common.api().all(_API))
    return account_page("keys.html", None, keys=keys)


def _new_page(new: NewKey, refusal: ApiProblem | None = None) -> Response:
    shown: dict[str, Any] = {"new": new, "permissions": PERMISSIONS, "environments": ENVIRONMENTS, "refusal": refusal}
    return account_page("new_key.html", None, refusal.status if refusal else 200, **shown)


def _key_page(found: dict[str, Any], refusal: ApiProblem | None = None, *, key: str = "") -> Response:
    names = {account["id"]: account["name"] for account in head(None)["accounts"]}
    status = refusal.status if refusal else 201 if key else 200
    values: dict[str, Any] = {"found": found, "account_names": names, "permissions": PERMISSIONS}
    return account_page("key.html", None, status, **values, key=key, refusal=refusal)
