"""An account's orders, and the commands that controls refused, over HTTP."""

import json
from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Any, cast
from uuid import UUID

from flask import Blueprint, Response, current_app, g, request
from flask.typing import ResponseReturnValue

from chassis import cursors, ratelimit
from chassis.access import allow, charge, page_size
from chassis.openapi import describe
from intents import model, schemas_orders, schemas_refusals, schemas_timeline, usecases
from intents.model.timeline import TimelineKey
from intents.routes import ORGANIZATION, PAGE, READERS, deps, json_response
from intents.usecases import orders, refusals, timeline

bp = Blueprint("orders", __name__)


@bp.get("/v1/accounts/<uuid:account_id>/orders")
@allow(*READERS)
@describe(
    "List the intents of an account as orders",
    answers={200: schemas_orders.OrderPage},
    errors=(404,),
    query={**schemas_orders.QUERY, **PAGE},
    headers=ORGANIZATION,
    note="A page may hold fewer orders than `limit` and still have a `next_cursor`.",
    codes=("bad_filter",),
)
def list_orders(account_id: UUID) -> ResponseReturnValue:
    about = _about(account_id, "orders", schemas_orders.QUERY)
    page = orders.list_orders(deps(), usecases.Reader(g.principal, account_id), partial(_orders, about))
    data = [schemas_orders.order_record(order) for order in page.orders]
    return _paged(about, data, page.last)


@bp.get("/v1/accounts/<uuid:account_id>/intents/<uuid:intent_id>/timeline")
@allow(*READERS)
@describe(
    "The story of an intent",
    answers={200: schemas_timeline.TimelinePage},
    errors=(404,),
    query=PAGE,
    headers=ORGANIZATION,
    note="Its commands with what decided them, every call to the broker, and what the broker reported, in order.",
)
def show_timeline(account_id: UUID, intent_id: UUID) -> ResponseReturnValue:
    about = _about(account_id, f"timeline:{intent_id}", ())
    reader = usecases.Reader(g.principal, account_id)
    page = timeline.timeline(deps(), reader, intent_id, partial(_timeline_page, about))
    following = page.last and _cursors().write(about, [page.last.at.isoformat(), *page.last[1:]])
    data = [schemas_timeline.timeline_record(entry) for entry in page.entries]
    return json_response({"data": data, "next_cursor": following})


def _timeline_page(about: tuple[str, ...]) -> tuple[TimelineKey | None, int]:
    place, limit = _cursors().read(about, request.args.get("next_cursor")), page_size(request.args.get("limit"))
    return TimelineKey(datetime.fromisoformat(place[0]), *place[1:]) if place else None, limit


@bp.get("/v1/accounts/<uuid:account_id>/refusals")
@allow(*READERS)
@describe(
    "List the commands that controls refused, newest first",
    answers={200: schemas_refusals.RefusalPage},
    errors=(404,),
    query={**schemas_refusals.QUERY, **PAGE},
    headers=ORGANIZATION,
    note="A page may hold fewer refusals than `limit` and still have a `next_cursor`.",
    codes=("bad_filter",),
)
def list_refusals(account_id: UUID) -> ResponseReturnValue:
    about = _about(account_id, "refusals", schemas_refusals.QUERY)
    page = refusals.list_refusals(deps(), usecases.Reader(g.principal, account_id), partial(_refusals, about))
    data = [schemas_refusals.refusal_record(refused) for refused in page.refusals]
    return _paged(about, data, page.last)


def _about(account_id: UUID, name: str, filters: Collection[str]) -> tuple[str, ...]:
    """What a cursor is bound to: it goes on in the list that it was made in."""
    given = {key: request.args[key] for key in filters if key in request.args}
    return str(g.principal.organization_id), str(account_id), name, json.dumps(given)


def _paged(about: tuple[str, ...], data: list[dict[str, Any]], last: tuple[datetime, UUID] | None) -> Response:
    following = last and _cursors().write(about, [last[0].isoformat(), str(last[1])])
    return json_response({"data": data, "next_cursor": following})


def _orders(about: tuple[str, ...]) -> orders.OrderQuery:
    wanted, limit = schemas_orders.order_filter(request.args), page_size(request.args.get("limit"))
    place = _place(about)
    charge(0 if wanted.is_exact else ratelimit.units_of_rows(orders.candidates(wanted, limit)))
    return orders.OrderQuery(wanted, model.OrderKey(*place) if place else None, limit)


def _refusals(about: tuple[str, ...]) -> refusals.RefusalQuery:
    wanted, limit = schemas_refusals.refusal_filter(request.args), page_size(request.args.get("limit"))
    place = _place(about)
    charge(0 if wanted.is_exact else ratelimit.units_of_rows(orders.candidates(wanted, limit)))
    return refusals.RefusalQuery(wanted, model.RefusalKey(*place) if place else None, limit)


def _place(about: tuple[str, ...]) -> tuple[datetime, UUID] | None:
    position = _cursors().read(about, request.args.get("next_cursor"))
    return (datetime.fromisoformat(position[0]), UUID(position[1])) if position else None


def _cursors() -> cursors.Cursors:
    return cast("cursors.Cursors", current_app.extensions["cursors"])
