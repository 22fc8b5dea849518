"""The people of the organization: members with their roles, invitations, and what the organization may do."""

from typing import Any
from urllib.parse import quote
from uuid import UUID

from flask import Blueprint, Response
from flask.typing import ResponseReturnValue

from console.administration import ENTITLEMENTS, ROLES
from console.api import ApiProblem
from console.routes import common
from console.routes.accounts import account_page, head
from console.routes.forms import admit, if_allowed, organization_id, question, require_uuid

bp = Blueprint("people", __name__)
bp.before_request(admit)
_PAGE = "/console/people"
_ADMIN = "admin"


@bp.get(_PAGE)
def show_people() -> ResponseReturnValue:
    return _page()


@bp.post(f"{_PAGE}/role")
def change_role() -> ResponseReturnValue:
    """What one cannot take back oneself asks again: another admin, and a role of one's own."""
    subject, role = common.field("subject"), common.field("role")
    path, is_own = _member(subject), subject == head(None)["me"]["subject"]
    text = "You may lose the right to change it back." if is_own else "An admin can change everything, and remove you."
    button = f"Make {subject} {role.replace('_', ' ')}"
    if (is_own or role == _ADMIN) and (page := question(f"{button}?", text, button)):
        return page
    return _done("PUT", path, {"role": role})


@bp.post(f"{_PAGE}/remove")
def remove_member() -> ResponseReturnValue:
    subject = common.field("subject")
    path = _member(subject)
    text = f"{subject} loses access to {head(None)['organization']}. API keys that they hold go on: disable those."
    if page := question(f"Remove {subject}?", text, f"Remove {subject}"):
        return page
    return _done("DELETE", path)


@bp.post(f"{_PAGE}/invitations")
def invite() -> ResponseReturnValue:
    """The one page that shows the codes: it is made of the API's answer, and nothing of it is kept.

    All else that it shows is read before: a page that fails afterwards would lose the codes.
    """
    subject, role = common.field("subject"), common.field("role")
    shown = _read()
    try:
        made = common.api().send("POST", _invitations(), {"subject": subject, "role": role})
    except ApiProblem as refusal:
        return _page(refusal, shown, subject=subject, role=role)
    return _page(None, shown | {"invitations": [*shown["invitations"], made]}, invited=made)


@bp.post(f"{_PAGE}/invitations/<uuid:invitation_id>/withdraw")
def withdraw_invitation(invitation_id: UUID) -> ResponseReturnValue:
    path = f"{_invitations()}/{require_uuid(invitation_id)}"
    subject = common.api().get(path)["subject"]
    text = "Its codes no longer work. They were shown once: another invitation has others."
    if page := question(f"Withdraw the invitation of {subject}?", text, f"Withdraw the invitation of {subject}"):
        return page
    return _done("DELETE", path)


def _done(method: str, path: str, body: Any = None) -> ResponseReturnValue:
    try:
        common.api().send(method, path, body)
    except ApiProblem as refusal:
        return _page(refusal)
    return common.go_to(_PAGE)


def _member(subject: str) -> str:
    """Dots alone would be a step in the path."""
    if subject in ("", ".", ".."):
        raise ApiProblem(404, {"code": "not_found", "detail": "There is no such member."})
    return f"/v1/organizations/{organization_id()}/memberships/{quote(subject, safe='')}"


def _invitations() -> str:
    return f"/v1/organizations/{organization_id()}/invitations"


def _read() -> dict[str, Any]:
    api, path = common.api(), f"/v1/organizations/{organization_id()}"
    return {
        "about": api.get(path),
        "entitled": api.get("/v1/auth/self")["entitlements"],
        "members": if_allowed(lambda: api.all(f"{path}/memberships")),
        "invitations": if_allowed(lambda: api.all(f"{path}/invitations")) or [],
    }


def _page(refusal: ApiProblem | None = None, shown: dict[str, Any] | None = None, **values: Any) -> Response:
    """`shown` is what was read already."""
    fixed = {"entitlements": ENTITLEMENTS, "roles": ROLES, "origin": common.origin(), "refusal": refusal}
    status = refusal.status if refusal else 200
    return account_page("people.html", None, status, **(shown or _read()), **fixed, **values)
