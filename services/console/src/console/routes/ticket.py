"""The ticket: an order is checked first, the decision explained, and then placed."""

from dataclasses import fields
from typing import Any
from uuid import UUID, uuid4

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from console import decisions, orders, usecases
from console.api import ApiProblem
from console.routes import common, trading
from console.routes.accounts import account_page, find_account, require_session

bp = Blueprint("ticket", __name__)
_TEXT = {"type": "string"}
_NAMES = tuple(field.name for field in fields(orders.Draft))


@bp.before_request
def admit() -> None:
    require_session()
    common.check_origin()


@bp.get("/console/accounts/<uuid:account_id>/ticket")
@describe("A ticket", answers={200: None}, query=dict.fromkeys(_NAMES, _TEXT))
def show_ticket(account_id: UUID) -> ResponseReturnValue:
    given = {name: value[:255] for name, value in request.args.items() if name in _NAMES}
    return _page(account_id, orders.Draft(**given))


@bp.post("/console/accounts/<uuid:account_id>/ticket")
def send_ticket(account_id: UUID) -> ResponseReturnValue:
    draft = orders.Draft(**{name: common.field(name) for name in _NAMES})
    if common.field("step") != "place":
        return _checked(account_id, draft)
    if question := trading.question(find_account(account_id), f"Place: {draft.words}"):
        return question
    try:
        placed = trading.submit(find_account(account_id), draft.command)
    except ApiProblem as refusal:
        return _page(account_id, draft, refusal=refusal)
    return common.go_to(f"/console/accounts/{account_id}/orders/{placed['intent_id']}")


@bp.post("/console/accounts/<uuid:account_id>/key")
def show_key(account_id: UUID) -> ResponseReturnValue:
    key, account = common.field("key"), find_account(account_id)
    if common.field("forget") == "yes":
        usecases.hold_key(common.deps(), common.cookie(common.SESSION), account["environment"], None)
    elif refusal := trading.refused_key(account, key):
        return _page(account_id, orders.Draft(), key_refusal=refusal)
    else:
        usecases.hold_key(common.deps(), common.cookie(common.SESSION), account["environment"], key)
    return common.go_to(f"/console/accounts/{account_id}/ticket")


def _checked(account_id: UUID, draft: orders.Draft) -> Response:
    """A dry run with the key; without one a preview, which whoever may read controls may have."""
    try:
        if trading.has_key(find_account(account_id)):
            decision = trading.submit(find_account(account_id), draft.command, dry_run="true")["controls"]
        else:
            path = f"/v1/controls/accounts/{account_id}/preview"
            decision = common.api().send("POST", path, {"command": draft.command})
    except ApiProblem as refusal:
        return _page(account_id, draft, refusal=refusal)
    return _page(account_id, draft, decision=decision)


def _page(
    account_id: UUID,
    draft: orders.Draft,
    *,
    decision: dict[str, Any] | None = None,
    refusal: ApiProblem | None = None,
    key_refusal: str = "",
) -> Response:
    account, found = find_account(account_id), decision or {}
    reasons = refusal.reasons if refusal else found.get("reasons", [])
    return account_page(
        "ticket.html", account_id, refusal.status if refusal else 200, draft=draft, decision=found.get("decision"),
        checks=decisions.explain(found.get("checks", []), reasons, found.get("facts", {})),
        refusal=refusal, key_refusal=key_refusal, has_key=trading.has_key(account), once=str(uuid4()),
        kinds=orders.KINDS, sides=orders.SIDES, times=orders.TIMES,
    )  # fmt: skip
