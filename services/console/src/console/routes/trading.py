"""Orders are submitted with an API key, by the specification: whoever trades here shows one, once a session."""

from typing import Any
from uuid import UUID

from flask import Response

from console import usecases
from console.api import ApiProblem, Caller, with_key
from console.routes import common, forms
from console.routes.accounts import head

_PERMISSION = "intent:edit"
NO_KEY = "Orders are submitted with an API key. Show one on the ticket page first."


def has_key(account: dict[str, Any]) -> bool:
    return account["environment"] in common.session().keys


def caller(account: dict[str, Any]) -> Caller:
    key = common.session().keys.get(account["environment"])
    if key is None:
        raise ApiProblem(403, {"code": "key_required", "detail": NO_KEY})
    return with_key(common.deps().api, key)


def submit(account: dict[str, Any], command: dict[str, Any], **query: str) -> Any:
    """Append a command, once for each form that was shown, however often it is sent."""
    path = f"/v1/accounts/{account['id']}/intents"
    once = "" if query else common.field("once", 64)
    try:
        return caller(account).send("POST", path, {"command": command}, idempotency_key=once, **query)
    except ApiProblem as refusal:
        if refusal.status == 401:  # the key, and not the session
            usecases.hold_key(common.deps(), common.cookie(common.SESSION), account["environment"], None)
            raise ApiProblem(403, {"code": "key_required", "detail": f"The key no longer works. {NO_KEY}"}) from None
        raise


def refused_key(account: dict[str, Any], key: str) -> str:
    """Why the key is of no use here; empty if it is."""
    try:
        found = with_key(common.deps().api, key).get("/v1/auth/self")
    except ApiProblem:
        return "The platform does not take this key."
    if found["organization_id"] != head(None)["me"]["organization_id"]:
        return "This key is of another organization."
    if found["environment"] != account["environment"]:
        return f"This key is for {found['environment']} accounts."
    return "" if _PERMISSION in found["permissions"] else f"This key lacks the permission {_PERMISSION}."


def asks(account: dict[str, Any]) -> bool:
    """Whether the form is still to be confirmed."""
    return account["environment"] == "live" and common.field("confirmed") != "yes"


def question(account: dict[str, Any], what: str) -> Response | None:
    """On a live account the same form once more, with what it does in its button; None if that was answered."""
    if not asks(account):
        return None
    text = f"What you do now is done with real money on {account['name']}."
    return forms.question("This account is live", text, f"{what} on {account['name']}", UUID(account["id"]))
