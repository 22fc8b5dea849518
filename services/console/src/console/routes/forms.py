"""What the pages of administration share: who may not see them, questions, and forms with versions."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from flask import Response, request

from chassis.problems import Problem
from console.api import ApiProblem
from console.routes import common
from console.routes.accounts import account_page, head, require_session

_NOT_ALLOWED = (401, 403)


def admit() -> None:
    """Of every page: somebody is signed in, and forms are ours."""
    require_session()
    common.check_origin()


def organization_id() -> str:
    return str(head(None)["me"]["organization_id"])


def require_uuid(value: object) -> UUID:
    """An id in the path; one that is no UUID names nothing."""
    if not isinstance(value, UUID):
        raise Problem(404)
    return value


def if_allowed(read: Callable[[], Any]) -> Any:
    """What was read; None where the API does not show it to this person.

    To be called after `head`, which notices a session that has ended.
    """
    try:
        return read()
    except ApiProblem as refusal:
        if refusal.status in _NOT_ALLOWED:
            return None
        raise


def question(title: str, text: str, button: str, account_id: UUID | None = None) -> Response | None:
    """The same form once more, with what it does in its button; None if that was answered.

    Not for forms with secrets: what they hold would be in the page.
    """
    if common.field("confirmed") == "yes":
        return None
    fields = [pair for pair in request.form.items(multi=True) if pair[0] != "csrf"]
    shown: dict[str, Any] = {"title": title, "text": text, "button": button, "fields": fields, "action": request.path}
    return account_page("confirm.html", account_id, **shown)
