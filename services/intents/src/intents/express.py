"""The express lane: a submit as most are, together with others and without the price of a general web framework.

Everything that is decided is decided where it always is: `schemas` load, `chassis.access` identifies, `usecases`
submit. Only what Flask would do around that is done here by hand, and requests that arrive at the same time share one
read and one write. A request that is odd in any way before something is written (a query, another credential, a body
that cannot be read, a caller that is not allowed) takes the ordinary lane from its beginning; refusals are answered by
the app.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import unquote_to_bytes
from uuid import UUID

from flask import Flask

from chassis import access, asgi, http_rules, keys, openapi, ratelimit, strict_json, tenancy, tracing, web
from chassis.asgi import Bridge, Scope, Send
from chassis.callers import CredentialCheck, Trust
from chassis.principals import Principal
from chassis.problems import Place
from intents import model, routes, schemas, store, usecases
from intents.lanes import Lanes

LANES = 3
TOGETHER = 32
PATIENCE_S = 0.02
GATHER_S = 0.008

_PATH = re.compile(rb"/v1/accounts/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/intents")
_ROUTE = "/v1/accounts/<uuid:account_id>/intents"
_ODD = (b"authorization", b"transfer-encoding")
_LARGEST = 4096  # bytes of a body that the event loop reads itself, before any quota; a plain command has some hundred

Headers = Mapping[bytes, bytes]
Outcome = TypeVar("Outcome")


@dataclass(slots=True)
class _Asked:
    """A request; then what was read for it and who sent it; then what is left of the sender's quota."""

    check: CredentialCheck
    key: str
    submission: usecases.Submission
    trace: tracing.Trace
    looked: store.LoadedFacts | None = None
    principal: Principal | None = None
    counted: ratelimit.Counts | None = None


class Express(Bridge):
    """In front of the app, or of several (`wsgi`) of which it is one."""

    def __init__(self, app: Flask, wsgi: asgi.Wsgi | None = None, place_of: asgi.PlaceOf | None = None) -> None:
        super().__init__(wsgi or app.wsgi_app, app.extensions["callers"], place_of or app.extensions["place_of"])
        self._deps: usecases.Deps = app.extensions["deps"]
        self._access: access.Access = app.extensions["access"]
        self._heavy_paths = openapi.heavy_paths(app)
        self._lanes: Lanes[_Asked, usecases.Told] = Lanes(
            self._submit_together, lanes=LANES, most=TOGETHER, patience_s=PATIENCE_S, gather_s=GATHER_S
        )

    async def answer(self, scope: Scope, body: bytes, send: Send) -> None:
        started = time.perf_counter()
        asked = self._asked(scope, body)
        told = await self._told(scope, asked) if asked else None
        if asked is None or told is None:
            await super().answer(scope, body, send)
            return
        place = Place("intents", _ROUTE, scope["path"])
        answer = _traced(asked, routes.answer_of, told, place, asked.trace.request_id)
        await asgi.respond(send, web.finish(answer, place, "POST", asked.trace, asked.counted or {}, started))

    def is_heavy(self, scope: Scope) -> bool:
        return self._heavy_paths.search(unquote_to_bytes(scope["raw_path"])) is not None or super().is_heavy(scope)

    def _asked(self, scope: Scope, body: bytes) -> _Asked | None:
        """What is asked, if it is a plain submit of a known key and nothing is wrong with it.

        The first request of a key takes the ordinary lane: there strangers wait for each other and for nobody else.
        """
        place, headers = _PATH.fullmatch(scope["raw_path"]), dict(scope["headers"])
        if place is None or not _is_plain(scope, headers):
            return None
        check = self.callers.classify(scope)
        return _submit(check, place[1], headers, body) if check.caller.trust is Trust.VERIFIED else None

    async def _told(self, scope: Scope, asked: _Asked) -> usecases.Told:
        """What became of the request; None if it is not one for this lane."""
        try:
            told = await self._lanes.ask(asked.submission.account_id, asked, asked.check.caller.tenant)
            if told is None and asked.counted is not None:
                told = await self.run(scope, asked.check, _traced, asked, self._submit_alone, scope, asked)
        except Exception as error:  # noqa: BLE001 - the app knows how to answer each of them
            return error
        return told

    def _submit_together(self, asked: Sequence[_Asked]) -> list[usecases.Told]:
        queries = [one.submission.query._replace(api_key=one.key) for one in asked]
        told: list[usecases.Told] = [None] * len(asked)
        counted: dict[int, usecases.Together] = {}
        for place, looked in enumerate(usecases.load_facts_many(self._deps, queries)):
            one, (facts, rows) = asked[place], looked
            one.looked, one.principal = looked, access.owner(self._access, one.key, rows)
            if one.principal is None or not _may(one.principal, facts):
                continue
            try:
                one.counted = self._access.rate_limit.count(f"{one.principal.kind}:{one.principal.id}")
            except Exception as error:  # noqa: BLE001 - too many: it is told, as anything else would be
                told[place] = error
            else:
                counted[place] = usecases.Together(one.principal, facts, one.submission, one.trace.traceparent)
        with tenancy.serving(one.principal.organization_id for one in counted.values()):
            outcomes = usecases.submit_together(self._deps, list(counted.values()))
        for place, outcome in zip(counted, outcomes, strict=True):
            told[place] = outcome
        return told

    def _submit_alone(self, scope: Scope, asked: _Asked) -> usecases.Result:
        deadline = usecases.Deadline.of_request(scope[http_rules.ARRIVED])
        principal, (facts, _rows) = cast("Principal", asked.principal), cast("store.LoadedFacts", asked.looked)
        with tenancy.serving([principal.organization_id]):
            return usecases.submit(self._deps, principal, facts, asked.submission, deadline)


def _traced(asked: _Asked, function: Callable[..., Outcome], *arguments: Any) -> Outcome:
    """Call the function, and let what it writes and logs carry the trace of the request."""
    token = tracing.current.set(asked.trace)
    try:
        return function(*arguments)
    finally:
        tracing.current.reset(token)


def _submit(check: CredentialCheck, account_id: bytes, headers: Headers, body: bytes) -> _Asked | None:
    try:
        key, once = headers[b"x-api-key"].decode("ascii"), headers.get(b"idempotency-key")
        if not keys.is_well_formed(key):
            return None
        command = schemas.command(strict_json.loads(body))
        submission = routes.submission(
            UUID(account_id.decode()), command, None if once is None else once.decode("latin-1")
        )
    except Exception:  # noqa: BLE001 - whatever it is, the ordinary lane will meet it again and answer it
        return None
    return _Asked(
        check, key, submission, tracing.Trace.begin(_text(headers, b"x-request-id"), _text(headers, b"traceparent"))
    )


def _text(headers: Headers, name: bytes) -> str | None:
    return headers[name].decode("latin-1") if name in headers else None


def _may(principal: Principal, facts: model.SubmitFacts) -> bool:
    if not any(one.admits(principal) for one in routes.SUBMITTERS):
        return False
    try:
        model.tradable(facts.account, principal)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def _is_plain(scope: Scope, headers: Headers) -> bool:
    length = headers.get(b"content-length", b"")
    return (
        scope["method"] == "POST"
        and not scope["query_string"]
        and len(headers) == len(scope["headers"])  # none is given twice
        and headers.get(b"content-type") == b"application/json"
        and b"x-api-key" in headers
        and length.isdigit()
        and int(length) <= _LARGEST
        and not any(name in headers for name in _ODD)
    )
