"""HTTP: parse, call, answer; one table from error to status and Alpaca's code."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from aiohttp import web

from paper_broker import connections, credentials, faults, model, schemas, views
from paper_broker.stream import Hub
from paper_broker.usecases import Broker

BROKER = web.AppKey("broker", Broker)
OPERATOR_TOKEN = web.AppKey("operator_token", str)
HUB = web.AppKey("hub", Hub)
log = logging.getLogger("paper_broker")
routes = web.RouteTableDef()
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# error -> status, code, message (None: the error's own). The first line that fits counts.
STATUSES: tuple[tuple[type[Exception], int, int, str | None], ...] = (
    (schemas.BadRequest, 400, 40010000, None),
    (credentials.Unauthorized, 401, 40110000, "request is not authorized"),
    (credentials.Forbidden, 403, 40310000, "forbidden."),
    (model.InsufficientBuyingPower, 403, 40310000, None),
    (model.InsufficientQuantity, 403, 40310000, None),
    (model.NotFound, 404, 40410000, None),
    (model.DuplicateClientOrderId, 422, 40010001, None),
    (model.Unprocessable, 422, 42210000, None),
    (faults.BadFaults, 422, 42210000, None),
    (faults.RateLimited, 429, 42910000, "rate limit exceeded"),
    (faults.FailedAfterAccept, 500, 50010000, "internal server error occurred"),
    (faults.Unavailable, 503, 50310000, "service unavailable"),
)
ERRORS = tuple(line[0] for line in STATUSES)
RETRY_AFTER = {"Retry-After": "1"}


def answer(body: object, status: int = 200) -> web.Response:
    return web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json")


def problem(error: Exception) -> tuple[int, dict[str, Any]]:
    status, code, message = next(line[1:] for line in STATUSES if isinstance(error, line[0]))
    return status, {"code": code, "message": message or str(error), **getattr(error, "details", {})}


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refusals become Alpaca's bodies; a cut closes the socket without a word."""
    try:
        return await handler(request)
    except ERRORS as error:
        status, body = problem(error)
        response = answer(body, status)
        response.headers.update(RETRY_AFTER if status == 429 else {})
        return response
    except faults.Cut:
        if request.transport:
            request.transport.abort()
        return web.Response()  # goes nowhere
    except web.HTTPException as error:
        return answer({"code": error.status * 100_000, "message": error.reason}, error.status)


@web.middleware
async def operators_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Who moves the market and reads every account's orders is the operator; without a token nobody is."""
    if request.path.startswith("/sim/"):
        credentials.require_operator(request.headers.getall("Authorization", []), request.app[OPERATOR_TOKEN])
    return await handler(request)


def caller(request: web.Request) -> tuple[Broker, str]:
    return request.app[BROKER], credentials.from_headers(request.headers)


async def read_body(request: web.Request) -> dict[str, Any]:
    if (request.content_length or 0) > request.client_max_size:
        raise web.HTTPRequestEntityTooLarge(request.client_max_size, request.content_length or 0)
    try:
        async with asyncio.timeout(connections.BODY_SECONDS):
            return schemas.body(await request.read())
    except TimeoutError:
        raise web.HTTPRequestTimeout from None


@routes.post("/v2/orders")
async def create_order(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    order = await broker.submit(account_id, schemas.new_order(await read_body(request)))
    return answer(views.nested(order, broker.legs(order)))


@routes.get("/v2/orders")
async def list_orders(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    broker.faults.before_read(request.path)
    found = await broker.orders(account_id, schemas.order_query(request.query))
    return answer(_listed(request, broker, found))


def _listed(request: web.Request, broker: Broker, found: list[model.Order]) -> list[dict[str, Any]]:
    """As they are, or the legs of those that have some under them."""
    if not schemas.is_nested(request.query):
        return [views.order(order) for order in found]
    legs = {order.id: broker.legs(order) for order in found}
    rolled_up = {leg.id for of_order in legs.values() for leg in of_order}
    return [views.nested(order, legs[order.id]) for order in found if order.id not in rolled_up]


@routes.get("/v2/orders:by_client_order_id")
async def order_by_client_id(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    broker.faults.before_read(request.path_qs)
    client_order_id = request.query.get("client_order_id", "")
    [shown] = _listed(request, broker, [await broker.order_by_client_id(account_id, client_order_id)])
    return answer(shown)


@routes.get("/v2/orders/{order_id}")
async def get_order(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    broker.faults.before_read(request.path)
    order_id = schemas.order_id(request.match_info["order_id"])
    [shown] = _listed(request, broker, [await broker.order(account_id, order_id)])
    return answer(shown)


@routes.patch("/v2/orders/{order_id}")
async def replace_order(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    change = schemas.change(await read_body(request))
    order = await broker.replace(account_id, schemas.order_id(request.match_info["order_id"]), change)
    return answer(views.order(order))


@routes.delete("/v2/orders/{order_id}")
async def cancel_order(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    await broker.cancel(account_id, schemas.order_id(request.match_info["order_id"]))
    return web.Response(status=204)


@routes.delete("/v2/orders")
async def cancel_all(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    results = await broker.cancel_all(account_id)
    return answer([_cancel_result(order_id, refusal) for order_id, refusal in results], 207)


def _cancel_result(order_id: str, refusal: model.Refusal | None) -> dict[str, Any]:
    status, body = problem(refusal) if refusal else (200, None)
    return {"id": order_id, "status": status, "body": body}


@routes.get("/v2/account")
async def get_account(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    account = await broker.account(account_id)
    return answer(views.account(account, broker.exchange.state.quotes))


@routes.get("/v2/account/activities")
@routes.get("/v2/account/activities/FILL")
async def activities(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    query, oldest_first = schemas.activity_query(request.query)
    rows = await broker.executions(account_id, query, oldest_first=oldest_first)
    return answer([views.activity(row) for row in rows])


@routes.get("/v2/positions")
async def positions(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    return answer([_position(broker, account_id, item) for item in await broker.positions(account_id)])


@routes.get("/v2/positions/{symbol:.+}")
async def position(request: web.Request) -> web.Response:
    broker, account_id = caller(request)
    symbol = request.match_info["symbol"]
    for item in await broker.positions(account_id):
        if symbol in (item.symbol, views.asset_id(item.symbol)):
            return answer(_position(broker, account_id, item))
    raise model.NotFound("position does not exist")


def _position(broker: Broker, account_id: str, item: model.Position) -> dict[str, Any]:
    held = broker.exchange.state.account(account_id).held.get(item.symbol, item.qty * 0)
    return views.position(item, broker.exchange.quote(item.symbol), held)


@routes.get("/v2/assets/{symbol:.+}")
async def asset(request: web.Request) -> web.Response:
    caller(request)
    symbol = request.match_info["symbol"]
    if not schemas.is_symbol(symbol):
        raise model.NotFound(f"asset not found for {symbol[:40]}")
    return answer(views.asset(symbol))


@routes.get("/v2/clock")
async def clock(request: web.Request) -> web.Response:
    broker, _ = caller(request)
    return answer(views.clock(broker.now()))


@routes.get("/v2/stocks/quotes/latest")
@routes.get("/v1beta3/crypto/us/latest/quotes")
async def latest_quotes(request: web.Request) -> web.Response:
    broker, _ = caller(request)
    quotes = await broker.quotes(schemas.symbols(request.query))
    return answer({"quotes": {quote.symbol: views.latest_quote(quote, broker.now()) for quote in quotes}})


@routes.get("/v2/stocks/trades/latest")
@routes.get("/v1beta3/crypto/us/latest/trades")
async def latest_trades(request: web.Request) -> web.Response:
    broker, _ = caller(request)
    quotes = await broker.quotes(schemas.symbols(request.query))
    return answer({"trades": {quote.symbol: views.latest_trade(quote, broker.now()) for quote in quotes}})


@routes.get("/stream")
async def stream(request: web.Request) -> web.WebSocketResponse:
    return await request.app[HUB].serve(request)


@routes.get("/sim/quotes/{symbol:.+}")
async def get_quote(request: web.Request) -> web.Response:
    symbol = schemas.symbol(request.match_info["symbol"])
    return answer(views.quote(request.app[BROKER].exchange.quote(symbol)))


@routes.put("/sim/quotes/{symbol:.+}")
async def put_quote(request: web.Request) -> web.Response:
    quote = schemas.quote(request.match_info["symbol"], await read_body(request))
    await request.app[BROKER].put_quote(quote)
    return answer(views.quote(request.app[BROKER].exchange.quote(quote.symbol)))


@routes.delete("/sim/quotes/{symbol:.+}")
async def release_quote(request: web.Request) -> web.Response:
    symbol = schemas.symbol(request.match_info["symbol"])
    await request.app[BROKER].release_quote(symbol)
    return answer(views.quote(request.app[BROKER].exchange.quote(symbol)))


@routes.post("/sim/ticks")
async def tick(request: web.Request) -> web.Response:
    count = schemas.tick_count(await read_body(request) if request.can_read_body else {})
    await request.app[BROKER].tick(count)
    return answer({"ticks": count})


@routes.get("/sim/faults")
async def get_faults(request: web.Request) -> web.Response:
    return answer(asdict(request.app[BROKER].faults.settings))


@routes.put("/sim/faults")
async def put_faults(request: web.Request) -> web.Response:
    return answer(asdict(request.app[BROKER].put_faults(schemas.faults(await read_body(request)))))


@routes.get("/sim/ledger")
async def ledger(request: web.Request) -> web.StreamResponse:
    """One JSON object per line, so that a reader of 100 000 orders needs no memory for them."""
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    async for page in request.app[BROKER].ledger():
        await response.write("".join(json.dumps(row) + "\n" for row in page).encode())
    await response.write_eof()
    return response


@routes.get("/sim/ledger/positions")
async def ledger_positions(request: web.Request) -> web.Response:
    return answer(await request.app[BROKER].all_positions())


@routes.get("/sim/ledger/summary")
async def ledger_summary(request: web.Request) -> web.Response:
    return answer(await request.app[BROKER].summary())


@routes.get("/health/live")
async def live(_request: web.Request) -> web.Response:
    return answer({"status": "live"})


@routes.get("/health/ready")
async def ready(request: web.Request) -> web.Response:
    """Ready means that the storage answers."""
    await request.app[BROKER].ready()
    return answer({"status": "ready"})
