"""HTTP: parse, call, answer; one table from error to status and Alpaca's code."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg2
from aiohttp import web

from tip_broker_fix.gateway import credentials, schemas, store, usecases, views
from tip_broker_fix.gateway.config import Config
from tip_broker_fix.gateway.engine import Engine
from tip_broker_fix.gateway.orders import ENDED, REFUSED, UNSEEN, Order
from tip_broker_fix.gateway.reader import Reader
from tip_broker_fix.gateway.stream import Hub

CONFIG = web.AppKey("config", Config)
ENGINE = web.AppKey("engine", Engine)
READER = web.AppKey("reader", Reader)
HUB = web.AppKey("hub", Hub)
BODY_SECONDS = 10.0
routes = web.RouteTableDef()
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# error -> status, code, message (None: the error's own). The first line that fits counts.
STATUSES: tuple[tuple[type[Exception], int, int, str | None], ...] = (
    (schemas.BadRequest, 400, 40010000, None),
    (credentials.Unauthorized, 401, 40110000, "request is not authorized"),
    (usecases.NotFound, 404, 40410000, None),
    (usecases.DuplicateClientOrderId, 422, 40010001, None),
    (usecases.Unprocessable, 422, 42210000, None),
    (usecases.SessionDown, 503, 50310000, None),
    (usecases.NoAnswer, 504, 50410000, "the broker has not answered"),
    (psycopg2.Error, 500, 50010000, "the database did not answer"),
)
ERRORS = tuple(line[0] for line in STATUSES)


def answer(body: object, status: int = 200) -> web.Response:
    return web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json")


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ERRORS as error:
        status, code, message = next(line[1:] for line in STATUSES if isinstance(error, line[0]))
        return answer({"code": code, "message": message or str(error)}, status)
    except web.HTTPException as error:
        return answer({"code": error.status * 100_000, "message": error.reason}, error.status)


def caller(request: web.Request) -> str:
    """The account. Without a session there is nothing true to say about it."""
    account = credentials.from_headers(request.app[CONFIG].account_key, request.headers)
    if not request.app[ENGINE].is_active:
        raise usecases.SessionDown("no session with the broker")
    return account


async def read_body(request: web.Request) -> dict[str, Any]:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return schemas.body(await request.read())
    except TimeoutError:
        raise web.HTTPRequestTimeout from None


def shown(order: Order) -> web.Response:
    """An order that the broker has, or why it has none."""
    if order.status == REFUSED:
        raise usecases.Unprocessable(order.reason or "refused")
    if order.status in UNSEEN:
        raise usecases.NotFound("order not found")
    return answer(views.order(order))


@routes.post("/v2/orders")
async def create_order(request: web.Request) -> web.Response:
    account = caller(request)
    order = schemas.new_order(account, await read_body(request))
    return shown(await request.app[ENGINE].request(usecases.Submit(order)))


@routes.patch("/v2/orders/{order_id}")
async def replace_order(request: web.Request) -> web.Response:
    account = caller(request)
    replaces = schemas.order_id(request.match_info["order_id"])
    return shown(await request.app[ENGINE].request(schemas.amend(account, replaces, await read_body(request))))


@routes.delete("/v2/orders/{order_id}")
async def cancel_order(request: web.Request) -> web.Response:
    account = caller(request)
    name = schemas.order_id(request.match_info["order_id"])
    order = await request.app[ENGINE].request(usecases.Cancel(account, name))
    if order.status in ENDED - {"canceled"} or (order.is_open and order.status != "pending_cancel"):
        raise usecases.Unprocessable(order.reason or f"order is already {order.status}")
    return web.Response(status=204)


@routes.get("/v2/orders:by_client_order_id")
async def order_by_client_id(request: web.Request) -> web.Response:
    return await _queried(request, request.query.get("client_order_id", ""))


@routes.get("/v2/orders/{order_id}")
async def get_order(request: web.Request) -> web.Response:
    return await _queried(request, request.match_info["order_id"])


async def _queried(request: web.Request, name: str) -> web.Response:
    account = caller(request)
    order = await request.app[ENGINE].request(usecases.Query(account, schemas.order_id(name)))
    if order.status in UNSEEN:
        raise usecases.NotFound("order not found")
    return answer(views.order(order))


@routes.get("/v2/orders")
async def list_orders(request: web.Request) -> web.Response:
    account, session, query = caller(request), request.app[CONFIG].session, request.query
    options = {"only_open": query.get("status", "open") == "open", "after": schemas.after(query)}
    limit = schemas.limit(query, "limit")
    found = await request.app[READER].read(store.account_orders, session, account, limit=limit, **options)
    return answer([views.order(order) for order in found])


@routes.get("/v2/account/activities/FILL")
async def activities(request: web.Request) -> web.Response:
    account, session, query = caller(request), request.app[CONFIG].session, request.query
    options = {"after": schemas.after(query), "position": schemas.position(query)}
    limit = schemas.limit(query, "page_size")
    found = await request.app[READER].read(store.executions, session, account, limit=limit, **options)
    return answer([views.activity(execution) for execution in found])


@routes.get("/v2/positions")
async def positions(request: web.Request) -> web.Response:
    account = caller(request)
    held = await request.app[READER].read(store.holdings, request.app[CONFIG].session, account)
    return answer([views.position(holding) for holding in held if holding.quantity])


@routes.get("/v2/account")
async def get_account(request: web.Request) -> web.Response:
    account, config = caller(request), request.app[CONFIG]
    held = await request.app[READER].read(store.holdings, config.session, account)
    return answer(views.account(f"{config.names.target}:{account}", config.currency, held))


@routes.get("/stream")
async def stream(request: web.Request) -> web.StreamResponse:
    if not request.app[ENGINE].is_active:
        raise usecases.SessionDown("no session with the broker")
    return await request.app[HUB].serve(request)


@routes.get("/health/live")
async def live(_request: web.Request) -> web.Response:
    return answer({"status": "live"})


@routes.get("/health/ready")
async def ready(request: web.Request) -> web.Response:
    """Ready means that the broker has let us in."""
    if not request.app[ENGINE].is_active:
        raise usecases.SessionDown("no session with the broker")
    return answer({"status": "ready"})
