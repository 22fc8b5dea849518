"""The same events for browsers and curl: Server-Sent Events."""

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import attrgetter
from uuid import UUID

from aiohttp import web

from chassis import cors, http_rules, logs, openapi, problems, reference, tracing
from chassis.authentication import PresentedCredentials
from chassis.fields import rfc3339
from stream_gateway import gateway as gateways
from stream_gateway.gateway import Gateway
from stream_gateway.model import BadPosition, BadSubscription, Ending, Stuck
from stream_gateway.routes.callers import is_account_id, presented
from stream_gateway.routes.connections import check
from stream_gateway.routes.document import NAMES, PATH, ROUTE, ROUTES
from stream_gateway.routes.refusals import Refusal, refusal
from stream_gateway.usecases import Request

log = logs.get(__name__)

TRANSPORT = "sse"
_TEXT = attrgetter("text")
_BROKEN = (ConnectionError,)
_POSITION = re.compile(r"[0-9]{1,20}", re.ASCII)
_ONCE = ("resume_after_sequence", "resume_epoch")
_PARAMETERS = ROUTE.description.query.keys()
_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would collect events until a buffer is full
}
_NOT_STORED = {"Cache-Control": "no-store"}


def create(gateway: Gateway, origins: Sequence[str] = ()) -> web.Application:
    """`origins` are those of the pages that may read streams."""
    allowed = cors.Cors(origins)
    middlewares = [_answering_errors, *([_answering_browsers] if allowed else ())]
    app = web.Application(middlewares=middlewares, client_max_size=0)
    app.on_response_prepare.append(partial(_add_common_headers, allowed))

    async def events(request: web.Request) -> web.StreamResponse:
        async def read() -> Request:
            return _request(request)

        stream = await gateway.subscribe(await _presented(gateway, request), read, TRANSPORT)
        response = web.StreamResponse(headers=_HEADERS)

        async def start() -> None:
            _notice_a_dead_peer(request, gateway.config.keepalive_seconds + gateway.config.keepalive_timeout_seconds)
            await response.prepare(request)

        try:
            ending = await gateway.run(stream, start, response.write, _TEXT, _BROKEN)
            return await _ended(request, response, ending, gateway.config.stuck_seconds)
        finally:
            gateway.streams.release(stream)

    async def ticket(request: web.Request) -> web.Response:
        shown = presented(request.headers.items(), request.remote, gateway.config.trusted_proxies)
        issued = await gateway.issue_ticket(shown, _bare_request(request))
        body = {"ticket": issued.text, "expires_at": rfc3339(issued.expires_at)}
        return web.json_response(body, status=201, headers=_NOT_STORED)

    async def streams(request: web.Request) -> web.Response:
        shown = presented(request.headers.items(), request.remote, gateway.config.trusted_proxies)
        account_id, found = await gateway.open_streams(shown, _bare_request(request))
        body = {"account_id": str(account_id), "open": sum(found.values()), "by_transport": found}
        return web.json_response(body, headers=_NOT_STORED)

    app.router.add_get(PATH, events, allow_head=False)
    app.router.add_post(f"{PATH}/ticket", ticket)
    app.router.add_get(f"{PATH}/streams", streams, allow_head=False)
    _add_pages(app, gateway)
    return app


async def _presented(gateway: Gateway, request: web.Request) -> PresentedCredentials:
    """The caller's credential: in headers, or behind a ticket. Both are two."""
    shown = presented(request.headers.items(), request.remote, gateway.config.trusted_proxies)
    given = request.query.getall("ticket", [])
    if not given:
        return shown
    if shown.credentials or len(given) > 1:
        raise problems.Problem(
            400, "two_credentials", "Send one credential: a ticket, x-api-key or Authorization, once."
        )
    return await gateway.redeem_ticket(given[0], _account_id(request), shown.address)


def _account_id(request: web.Request) -> UUID | None:
    text = request.match_info["account_id"]
    return UUID(text) if is_account_id(text) else None


def _bare_request(request: web.Request) -> Request:
    """Of an endpoint that takes nothing but the account."""
    fault = (
        problems.Problem(400, "unknown_query", "This endpoint takes no query parameters.") if request.query else None
    )
    return Request(_account_id(request), frozenset(NAMES.values()), fault=fault)


def _add_pages(app: web.Application, gateway: Gateway) -> None:
    """What every service has: health, and its document."""
    pages_to_read = reference.Reference(partial(openapi.document, [], ROUTES))

    async def live(_request: web.Request) -> web.Response:
        return web.json_response({"status": "live"})

    async def ready(_request: web.Request) -> web.Response:
        return web.json_response(
            {"status": "ready" if gateway.ready else "waiting"}, status=200 if gateway.ready else 503
        )

    async def docs(request: web.Request) -> web.Response:
        page = pages_to_read.page(request.path)
        return web.Response(
            body=page.text.encode(), headers={**reference.PAGE_HEADERS, "Content-Type": page.content_type}
        )

    pages = {"/health/live": live, "/health/ready": ready, reference.DOCUMENT: docs, "/docs": docs}
    pages["/docs/{name:.+}"] = docs
    for path, handler in pages.items():
        app.router.add_get(path, handler)


async def _ended(
    request: web.Request, response: web.StreamResponse, ending: Ending, patience_s: float
) -> web.StreamResponse:
    """Send the reason, and close. A subscriber that is stuck is cut instead, and learns it when it resumes."""
    refused = refusal(ending)
    gateways.count_ending(TRANSPORT, refused.reason)
    if request.transport is None:
        return response
    if isinstance(ending, Stuck):
        request.transport.abort()
        return response
    # Closing waits until everything was read, and for somebody who does not read that would be for ever.
    asyncio.get_running_loop().call_later(patience_s, request.transport.abort)
    response.force_close()
    data = json.dumps({"code": refused.reason, "detail": refused.detail})
    await response.write(f"event: end\ndata: {data}\n\n".encode())
    return response


def _request(request: web.Request) -> Request:
    types, resume_after, resume_epoch, fault = frozenset[int](), None, None, None
    try:
        _check_parameters(request)
        types = _types(request)
        resume_after, resume_epoch = _position(request)
    except (Ending, problems.Problem) as problem:
        fault = problem
    return Request(_account_id(request), types, resume_after, resume_epoch, fault)


def _check_parameters(request: web.Request) -> None:
    if not request.query.keys() <= _PARAMETERS:
        raise problems.Problem(400, "unknown_query", f"The parameters are {' and '.join(sorted(_PARAMETERS))}.")
    if any(len(request.query.getall(name, [])) > 1 for name in _ONCE):
        raise problems.Problem(400, "repeated_query", "A query parameter is given twice.")


def _types(request: web.Request) -> frozenset[int]:
    """All of them, unless some are named."""
    named = [name for value in request.query.getall("subscriptions", []) for name in value.split(",")]
    if any(name not in NAMES for name in named):
        raise BadSubscription
    return frozenset(NAMES[name] for name in named or NAMES)


def _position(request: web.Request) -> tuple[int | None, str | None]:
    """Sequence and epoch of Last-Event-ID, which a browser sends when it comes back, else of the address.

    An id without an epoch is one that a client has put together by itself.
    """
    if last := request.headers.get("Last-Event-ID"):
        text, _, epoch = last.partition("@")
        return _sequence(text), epoch or None
    sequence = request.query.get("resume_after_sequence")
    return None if sequence is None else _sequence(sequence), request.query.get("resume_epoch") or None


def _sequence(text: str) -> int:
    if not _POSITION.fullmatch(text):
        raise BadPosition
    return int(text)


def _notice_a_dead_peer(request: web.Request, seconds: float) -> None:
    """Have the kernel give up on a peer that no longer acknowledges heartbeats; half-open connections end by it."""
    connection = request.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux only
    if connection is not None and option is not None:
        connection.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))


@web.middleware
async def _answering_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    request["trace"] = tracing.Trace.begin(request.headers.get("X-Request-Id"), request.headers.get("traceparent"))
    try:
        check(request)
        _refuse_query_of_pages(request)
        return await handler(request)
    except ConnectionError:
        raise  # the subscriber has gone: there is nobody to answer
    except web.HTTPException as error:
        allowed = {name: value for name, value in error.headers.items() if name == "Allow"}
        refused = refusal(problems.Problem(error.status, detail=error.reason, headers=allowed))
    except Exception as error:  # noqa: BLE001 - one place reports every refusal
        refused = refusal(error)
        gateways.count_ending(TRANSPORT, refused.reason)
    return _problem(request, refused)


@web.middleware
async def _answering_browsers(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """A browser wants to know whether it may send a request before it does."""
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        return web.Response(status=204)
    return await handler(request)


def _refuse_query_of_pages(request: web.Request) -> None:
    """Only the stream takes parameters, and its own are checked after the credential."""
    resource = request.match_info.route.resource
    if request.query and resource is not None and not resource.canonical.startswith(PATH):
        raise problems.Problem(400, "unknown_query", "This endpoint takes no query parameters.")


def _problem(request: web.Request, refused: Refusal) -> web.Response:
    problem = problems.Problem(refused.status, refused.code, refused.detail, headers=refused.headers)
    match = problems.RouteMatch("stream-gateway", PATH, request.path)
    answer = problems.render(problem, match, request["trace"].request_id)
    response = web.Response(status=answer.status, headers=answer.headers, body=answer.body)
    if refused.status == 429:  # whoever has too much must not hold a connection besides
        response.force_close()
    return response


async def _add_common_headers(allowed: cors.Cors, request: web.Request, response: web.StreamResponse) -> None:
    of_origin = allowed.of_request(request.method, request.headers.get("Origin"))
    for name, value in (*http_rules.common_headers(request.get("trace")), *of_origin):
        response.headers.setdefault(name, value)
