"""Orders: the live table, an order's story, replacing and canceling."""

from typing import Any
from uuid import UUID, uuid4

from flask import Blueprint, Response, jsonify, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from console import decisions, orders
from console.api import ApiProblem
from console.routes import common, trading
from console.routes.accounts import account_page, find_account, log_position, require_session

bp = Blueprint("orders", __name__)
_TEXT = {"type": "string"}
_FILTERS = ("status", "symbol", "tag")
_ROWS = 50
STATUSES = ("open", "closed", *sorted(orders.OPEN | orders.ENDED.keys()))


@bp.before_request
def admit() -> None:
    require_session()
    common.check_origin()


@bp.get("/console/accounts/<uuid:account_id>/orders")
@describe("Orders", answers={200: None}, query=dict.fromkeys((*_FILTERS, "next_cursor"), _TEXT))
def show_orders(account_id: UUID) -> ResponseReturnValue:
    api, path = common.api(), f"/v1/accounts/{account_id}/orders"
    chosen = {name: request.args.get(name, "").strip() for name in _FILTERS}
    chosen["symbol"] = chosen["symbol"].upper()
    find_account(account_id)
    after = log_position(account_id)
    page = api.get(path, order="desc", limit=_ROWS, next_cursor=request.args.get("next_cursor"), **chosen)
    is_first = "next_cursor" not in request.args
    return account_page(
        "orders.html", account_id, orders=page["data"], next_cursor=page["next_cursor"], chosen=chosen,
        statuses=STATUSES, after=after, is_first=is_first,
    )  # fmt: skip


@bp.post("/console/accounts/<uuid:account_id>/stream")
def issue_ticket(account_id: UUID) -> ResponseReturnValue:
    """For one stream of events; the browser opens it at the platform itself."""
    ticket = common.api().send_harmless("POST", f"/v1/accounts/{account_id}/events/ticket")["ticket"]
    return jsonify(ticket=ticket)


@bp.get("/console/accounts/<uuid:account_id>/orders/<uuid:intent_id>")
def show_order(account_id: UUID, intent_id: UUID) -> ResponseReturnValue:
    return _order_page(account_id, intent_id)


@bp.post("/console/accounts/<uuid:account_id>/orders/<uuid:intent_id>/cancel")
def cancel_order(account_id: UUID, intent_id: UUID) -> ResponseReturnValue:
    command = {"type": "CANCEL", "payload": {"ref_intent_id": str(intent_id)}}
    return _change(account_id, intent_id, command, "Cancel")


@bp.post("/console/accounts/<uuid:account_id>/orders/<uuid:intent_id>/replace")
def replace_order(account_id: UUID, intent_id: UUID) -> ResponseReturnValue:
    order = common.api().get(f"/v1/accounts/{account_id}/intents/{intent_id}")
    changes = {name: common.field(name, 40) for name in ("quantity", "limit_price", "stop_price")}
    spec = orders.replacement(_spec(account_id, intent_id, order), changes)
    command = {"type": "REPLACE", "payload": {"ref_intent_id": str(intent_id), "spec": spec}}
    [values] = spec.values()
    return _change(account_id, intent_id, command, f"Replace by {values['quantity']} {orders.priced(spec)}")


def _change(account_id: UUID, intent_id: UUID, command: dict[str, Any], verb: str) -> ResponseReturnValue:
    order = common.api().get(f"/v1/accounts/{account_id}/intents/{intent_id}")
    what = f"{verb}: {orders.order_words(order | {'spec': _spec(account_id, intent_id, order)})}"
    if question := trading.question(find_account(account_id), what):
        return question
    try:
        trading.submit(find_account(account_id), command)
    except ApiProblem as refusal:
        return _order_page(account_id, intent_id, refusal=refusal)
    return common.go_to(f"/console/accounts/{account_id}/orders/{intent_id}")


def _order_page(account_id: UUID, intent_id: UUID, refusal: ApiProblem | None = None) -> Response:
    api, path = common.api(), f"/v1/accounts/{account_id}/intents/{intent_id}"
    find_account(account_id)
    timeline = api.all(f"{path}/timeline")
    order = api.get(path)  # later, so that it shows all that the stream begins after
    created = timeline[0]["command"]["payload"] if timeline and "command" in timeline[0] else {}
    order["spec"] = _latest_spec(order, timeline)
    return account_page(
        "order.html", account_id, refusal.status if refusal else 200, order=order, created=created,
        timeline=timeline, explain=decisions.explain, refusal=refusal, once=str(uuid4()),
        is_open=order["state"]["status"] in orders.OPEN, can_trade=trading.has_key(find_account(account_id)),
        after=max((entry["sequence"] or 0 for entry in timeline), default=0),
    )  # fmt: skip


def _spec(account_id: UUID, intent_id: UUID, order: dict[str, Any]) -> dict[str, Any]:
    if order.get("spec"):
        return dict(order["spec"])
    return _latest_spec(order, common.api().all(f"/v1/accounts/{account_id}/intents/{intent_id}/timeline"))


def _latest_spec(order: dict[str, Any], timeline: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the order as it is: a CANCEL names none, so then that of the command before it."""
    if order.get("spec"):
        return dict(order["spec"])
    commands = [entry["command"]["payload"] for entry in timeline if entry.get("command")]
    return next((dict(payload["spec"]) for payload in reversed(commands) if payload.get("spec")), {})
