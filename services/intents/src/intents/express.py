"""The express lane: a submit as most are, without the price of a general web framework.

Everything that is decided is decided where it always is: `schemas` load, `chassis.access` identifies, `usecases`
submit. Only what Flask would do around that is done here by hand, which is two fifths of the work of a request. A
request that is odd in any way before something is written (a query, another credential, a body that cannot be read, a
caller that is not allowed) takes the ordinary lane from its beginning, with what was read of the database, and refusals
are answered by the app.
"""

import io
import json
import re
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from uuid import UUID

from flask import Flask, Response, g

from chassis import access, keys, ratelimit, strict_json, tracing, web
from chassis.principals import Principal
from intents import model, routes, schemas, usecases

_PATH = re.compile(r"/v1/accounts/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/intents", re.ASCII)
_ODD = ("HTTP_AUTHORIZATION", "HTTP_TRANSFER_ENCODING")
_ROUTE = "/v1/accounts/<uuid:account_id>/intents"

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Wsgi = Callable[[Environ, StartResponse], Iterable[bytes]]


class Express:
    """WSGI in front of the app's own."""

    def __init__(self, app: Flask, deps: usecases.Deps) -> None:
        self._app, self._deps = app, deps
        self._ordinary: Wsgi = app.wsgi_app
        self._access: access.Access = app.extensions["access"]

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        place = _PATH.fullmatch(environ["PATH_INFO"])
        if place is None or not _is_plain(environ):
            return self._ordinary(environ, start_response)
        started = time.perf_counter()
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        environ["wsgi.input"] = io.BytesIO(body)
        trace = tracing.Trace.begin(environ.get("HTTP_X_REQUEST_ID"), environ.get("HTTP_TRACEPARENT"))
        token = tracing.current.set(trace)
        try:
            ready = self._ready(environ, UUID(place[1]), body)
            if ready is None:
                return self._ordinary(environ, start_response)
            return self._submit(environ, start_response, started, trace, *ready)
        finally:
            tracing.current.reset(token)

    def _ready(
        self, environ: Environ, account_id: UUID, body: bytes
    ) -> tuple[Principal, model.Facts, usecases.Submission] | None:
        """Who asks for what, if nothing is wrong with either."""
        try:
            command = schemas.command(strict_json.loads(body))
            submission = routes.submission(account_id, command, environ.get("HTTP_IDEMPOTENCY_KEY"))
            key = environ["HTTP_X_API_KEY"]
            if not keys.is_well_formed(key):
                return None
            question = submission.question._replace(key_prefix=keys.prefix(key))
            facts, rows = environ[routes.LOOKED] = usecases.look(self._deps, question)
            principal = access.owner(self._access, key, rows)
            if principal is None or not any(one.admits(principal) for one in routes.SUBMITTERS):
                return None
            model.tradable(facts.account, principal)
        except Exception:  # noqa: BLE001 - whatever it is, the ordinary lane will meet it again and answer it
            return None
        return principal, facts, submission

    def _submit(
        self,
        environ: Environ,
        start_response: StartResponse,
        started: float,
        trace: tracing.Trace,
        principal: Principal,
        facts: model.Facts,
        submission: usecases.Submission,
    ) -> Iterable[bytes]:
        counted: ratelimit.Counts = {}
        try:
            counted = self._access.rate_limit.count(f"{principal.kind}:{principal.id}")
            result = usecases.submit(self._deps, principal, facts, submission)
        except Exception as error:  # noqa: BLE001 - the app knows how to answer each of them
            return self._refused(environ, started, trace, counted, error)(environ, start_response)
        answer = json.dumps(model.record(result.action)).encode()
        status = routes.status_of(result)
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(answer))),
            *routes.headers_of(result),
            *web.common_headers(trace),
            ("Cache-Control", "no-store"),
            *ratelimit.headers(counted),
        ]
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        web.measure("intents", "POST", _ROUTE, environ["PATH_INFO"], status, time.perf_counter() - started)
        return [answer]

    def _refused(
        self, environ: Environ, started: float, trace: tracing.Trace, counted: ratelimit.Counts, error: Exception
    ) -> Response:
        with self._app.request_context(environ):
            g.started, g.trace, g.rate_limits = started, trace, counted
            return self._app.finalize_request(self._app.handle_user_exception(error))


def _is_plain(environ: Environ) -> bool:
    length = environ.get("CONTENT_LENGTH") or ""
    return (
        environ["REQUEST_METHOD"] == "POST"
        and environ.get("CONTENT_TYPE") == "application/json"
        and not environ.get("QUERY_STRING")
        and "HTTP_X_API_KEY" in environ
        and length.isdigit()
        and int(length) <= strict_json.MAX_BYTES
        and not any(header in environ for header in _ODD)
    )
