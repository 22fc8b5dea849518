"""Fast path for well-formed API-key submits: on the event loop, batched with others, without Flask's cost.

It decides nothing by itself: `schemas_submits` parses, `chassis.authentication` authenticates, `chassis.access`
authorizes, `usecases.submit` decides and writes, `routes_submits.answer_of` renders. Only what Flask does around that
is done here by hand, and requests that arrive at the same time share one read and one write. A request that is
unusual in any way (a query, another credential, a body that cannot be parsed, a key that is not known) goes to the
Flask app from its start.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes
from uuid import UUID

from flask import Flask

from chassis import access, asgi, http_rules, keys, openapi, ratelimit, strict_json, tenancy, tracing, web
from chassis.asgi import Bridge, Scope, Send
from chassis.authentication import Access, match_api_key
from chassis.callers import CredentialCheck, Trust
from chassis.principals import Principal
from chassis.problems import Problem, RouteMatch
from intents import model, routes_submits, schemas_submits, store, usecases
from intents.micro_batcher import MicroBatcher
from intents.usecases import Deferred, Outcome, PendingSubmit, Policy

MAX_IN_FLIGHT = 3
MAX_BATCH = 32
OVERTAKE_AFTER_S = 0.02
LINGER_S = 0.008

_PATH = re.compile(rb"/v1/accounts/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/intents")
_ROUTE = "/v1/accounts/<uuid:account_id>/intents"
_UNUSUAL = (b"authorization", b"transfer-encoding")
_LARGEST = 4096  # bytes of a body that the event loop parses itself, before any quota; a plain command has some hundred

Headers = Mapping[bytes, bytes]


@dataclass(slots=True)
class SubmitRequest:
    """A parsed request; once its caller is authenticated also the submission, and what is left of the quota."""

    check: CredentialCheck
    organization_id: UUID
    """Whose the key was when it was verified, which never changes."""
    api_key: str
    account_id: UUID
    command: model.Command
    idempotency_key: model.IdempotencyKey | None
    trace: tracing.Trace
    pending: PendingSubmit | None = None
    counts: ratelimit.Counts = field(default_factory=dict)

    @property
    def query(self) -> store.FactsQuery:
        key, command = self.idempotency_key, self.command
        once = key and key.key
        return store.FactsQuery(
            self.account_id, command.symbol, command.ref_intent_id, once, self.api_key, command.client_id
        )


class SubmitFastPath(Bridge):
    """In front of the app, or of several (`wsgi`) of which it is one."""

    def __init__(self, app: Flask, wsgi: asgi.Wsgi | None = None, match_route: asgi.MatchRoute | None = None) -> None:
        known = app.extensions
        super().__init__(wsgi or app.wsgi_app, known["callers"], match_route or known["match_route"], known["cors"])
        self._deps: usecases.Deps = app.extensions["deps"]
        self._access: Access = app.extensions["access"]
        self._heavy_paths = openapi.heavy_paths(app)
        self._batcher: MicroBatcher[SubmitRequest, Outcome | None] = MicroBatcher(
            self._submit_batch,
            max_in_flight=MAX_IN_FLIGHT,
            max_batch=MAX_BATCH,
            overtake_after_s=OVERTAKE_AFTER_S,
            linger_s=LINGER_S,
        )

    async def answer(self, scope: Scope, body: bytes, send: Send) -> None:
        started = time.perf_counter()
        request = self._parsed(scope, body)
        outcome = await self._outcome(scope, request) if request else None
        if request is None or outcome is None:
            await super().answer(scope, body, send)
            return
        match = RouteMatch("intents", _ROUTE, scope["path"])
        with tracing.resumed(request.trace):
            answer = routes_submits.answer_of(outcome, match, request.trace.request_id)
        await asgi.respond(send, web.finish(answer, match, "POST", request.trace, request.counts, started))

    def is_heavy(self, scope: Scope) -> bool:
        return self._heavy_paths.search(unquote_to_bytes(scope["raw_path"])) is not None or super().is_heavy(scope)

    def _parsed(self, scope: Scope, body: bytes) -> SubmitRequest | None:
        """The request, if it is a plain submit of a verified key and nothing is wrong with it.

        The first request of a key goes to Flask: there strangers wait for each other and for nobody else.
        """
        match, headers = _PATH.fullmatch(scope["raw_path"]), dict(scope["headers"])
        if match is None or not _is_plain(scope, headers):
            return None
        check = self.callers.classify(scope)
        if check.caller.trust is not Trust.VERIFIED:
            return None
        return _parse(check, match[1], headers, body, asgi.trace_of(scope))

    async def _outcome(self, scope: Scope, request: SubmitRequest) -> Outcome | None:
        """None if the key is no longer valid: Flask refuses it."""
        try:
            outcome = await self._batcher.submit(request.account_id, request, request.check.caller.tenant)
            if isinstance(outcome, Deferred):
                outcome = await self.run(scope, request.check, self._submit_deferred, scope, request)
        except Exception as error:  # noqa: BLE001 - `routes_submits.answer_of` renders each of them
            return error
        return outcome

    def _submit_batch(self, requests: Sequence[SubmitRequest]) -> list[Outcome | None]:
        with tenancy.serving(request.organization_id for request in requests):
            loaded = usecases.load_facts_many(self._deps, [request.query for request in requests])
        authorized = [self._authorize(request, facts) for request, facts in zip(requests, loaded, strict=True)]
        pending = [item for item in authorized if isinstance(item, PendingSubmit)]
        with tenancy.serving(request.organization_id for request in requests if request.pending):
            outcomes = iter(usecases.submit(self._deps, pending, Policy.COALESCED))
        return [next(outcomes) if isinstance(item, PendingSubmit) else item for item in authorized]

    def _authorize(self, request: SubmitRequest, loaded: store.LoadedFacts) -> PendingSubmit | Problem | None:
        """Authenticate, count and authorize, as `access.allow` does for Flask. None if the key is no longer valid."""
        principal = match_api_key(self._access, request.api_key, loaded.keys)
        if principal is None:
            return None
        try:
            request.counts = self._access.rate_limit.count(f"{principal.kind}:{principal.id}")
            access.decide(principal, routes_submits.SUBMITTERS, 403)
            access.refuse_unseen(principal, request.account_id)
        except Problem as problem:
            return problem
        request.pending = PendingSubmit(_submission(request, principal), loaded.facts)
        return request.pending

    def _submit_deferred(self, scope: Scope, request: SubmitRequest) -> Outcome:
        deadline = usecases.Deadline.of_request(scope[http_rules.ARRIVED])
        pending = [request.pending] if request.pending else []
        with tracing.resumed(request.trace), tenancy.serving([request.organization_id]):
            [outcome] = usecases.submit(self._deps, pending, Policy.EACH, deadline)
        return outcome


def _submission(request: SubmitRequest, principal: Principal) -> model.Submission:
    key = request.idempotency_key
    return routes_submits.submission_of(request.account_id, principal, request.command, key, request.trace)


def _parse(
    check: CredentialCheck, account_id: bytes, headers: Headers, body: bytes, trace: tracing.Trace
) -> SubmitRequest | None:
    try:
        organization_id = UUID(check.caller.tenant)
        api_key, key = headers[b"x-api-key"].decode("ascii"), headers.get(b"idempotency-key")
        if not keys.is_well_formed(api_key):
            return None
        command = schemas_submits.command(strict_json.loads(body))
        idempotency_key = schemas_submits.idempotency_key(None if key is None else key.decode("latin-1"), command)
    except Exception:  # noqa: BLE001 - whatever it is, Flask meets it again and answers it
        return None
    return SubmitRequest(check, organization_id, api_key, UUID(account_id.decode()), command, idempotency_key, trace)


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
        and not any(name in headers for name in _UNUSUAL)
    )
