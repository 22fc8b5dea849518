"""The Flask app every service starts from: strict input, one form of errors, ids, headers, metrics, health, docs."""

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NoReturn
from uuid import UUID

from flask import Blueprint, Flask, Request, Response, current_app, g, jsonify, request, url_for
from flask.typing import ResponseReturnValue
from prometheus_client import Counter, Histogram
from sqlalchemy import Engine
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.routing import BaseConverter, MapAdapter, Rule

from chassis import (
    access,
    authentication,
    cors,
    db,
    http_rules,
    logs,
    metrics,
    openapi,
    presence,
    problems,
    query,
    ratelimit,
    reference,
    strict_json,
    tenancy,
    tokens,
    tracing,
)
from chassis.callers import Callers
from chassis.config import ServiceConfig
from chassis.fields import Identifier
from chassis.problems import Answer, RouteMatch

log = logs.get(__name__)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


# Of a quota so much may be refused credentials of one address in one process, before it has to wait.
_REFUSED_PART = 10
_LEAST_REFUSED = 60


class StrictRequest(Request):
    """A request whose JSON is read by our rules and not by Flask's."""

    max_content_length = strict_json.MAX_BYTES

    def get_json(self, *_: Any, **__: Any) -> Any:
        if not _is_json(self):
            raise problems.Problem(415, detail="Send Content-Type: application/json.")
        try:
            return strict_json.loads(self.get_data(cache=True))
        except strict_json.BadJson as problem:
            raise problems.Problem(400, "malformed_json", f"{problem}") from None

    def on_json_loading_failed(self, _error: ValueError | None) -> NoReturn:
        raise problems.Problem(400, "malformed_json", "The body is not valid JSON.")


def _is_json(incoming: Request) -> bool:
    charset = incoming.mimetype_params.get("charset", "utf-8")
    return incoming.mimetype == "application/json" and charset.lower() == "utf-8"


class _PathId(BaseConverter):
    regex = r"[^/]+"

    def to_python(self, value: str) -> Any:
        return UUID(value) if Identifier.PATTERN.fullmatch(value) else access.BadId()

    def to_url(self, value: Any) -> str:
        return str(value)


def create(
    name: str,
    config: ServiceConfig,
    engine: Engine,
    blueprints: Sequence[Blueprint],
    *,
    statuses: Mapping[type[Exception], int],
    extensions: Mapping[str, Any],
    keys: tokens.KeySource | None = None,
) -> Flask:
    """Wire one service's app. `statuses` is its table of domain errors, `extensions` what its routes need."""
    app = bare(name, statuses)
    if config.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=config.trusted_proxies)  # type: ignore[method-assign]
    app.extensions["access"] = authentication.for_service(config, engine, keys)
    app.extensions["cors"] = cors.Cors(config.cors_origins)
    app.extensions["callers"] = Callers(
        trusted_proxies=config.trusted_proxies,
        refused_per_minute=max(_LEAST_REFUSED, config.rate_limit_per_minute // _REFUSED_PART),
        presence=presence.OF_WORKERS,
    )
    app.extensions |= dict(extensions)
    for blueprint in (*blueprints, _operations(engine)):
        app.register_blueprint(blueprint)
    return app


def bare(name: str, statuses: Mapping[type[Exception], int]) -> Flask:
    """An app without routes or callers that parses, refuses and measures requests as all of ours do."""
    app = Flask(name, static_folder=None)
    app.request_class = StrictRequest
    app.json.sort_keys = False
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.url_map.converters["uuid"] = _PathId
    app.extensions["match_route"] = partial(match_route, app)
    app.before_request(_begin)
    app.before_request(_check_query_of_open_views)
    app.after_request(_finish)
    app.register_error_handler(Exception, partial(_answer_error, statuses))
    return app


def match_route(app: Flask, method: str, path: str) -> RouteMatch:
    """Where the app routes a request. The route is the rule: ids and symbols in a label would grow without bound."""
    adapter = app.url_map.bind("")
    shown = "/" + path.lstrip("/")
    try:
        rule, _arguments = adapter.match(shown, method, return_rule=True)
    except MethodNotAllowed as error:
        return _unmatched(app, adapter, shown, error.valid_methods or ())
    except HTTPException:
        return RouteMatch(app.name, "unmatched", shown, is_route=False)
    return RouteMatch(app.name, rule.rule, shown, _is_plain_text(app, rule))


def _unmatched(app: Flask, adapter: MapAdapter, path: str, methods: Iterable[str]) -> RouteMatch:
    """A path that only other methods have; errors look as they do for those."""
    rules = (adapter.match(path, method, return_rule=True)[0] for method in methods)
    return RouteMatch(app.name, "unmatched", path, any(_is_plain_text(app, rule) for rule in rules), is_route=False)


def _is_plain_text(app: Flask, rule: Rule) -> bool:
    return hasattr(app.view_functions.get(rule.endpoint), "plain_text_errors")


def _answer_error(statuses: Mapping[type[Exception], int], error: Exception) -> ResponseReturnValue:
    """Nothing escapes as a stack trace."""
    match = current_app.extensions["match_route"](request.method, request.path)
    trace = tracing.current.get()
    status, headers, body = problems.answer(error, statuses, match, trace.request_id if trace else None)
    return Response(body, status, headers)


def _begin() -> None:
    g.started = time.perf_counter()
    g.trace = tracing.Trace.begin(request.headers.get("x-request-id"), request.headers.get("traceparent"))
    tracing.current.set(g.trace)
    tenancy.serve()
    if request.environ.get("PATH_INFO", "").startswith("//"):
        raise problems.Problem(404)  # the routing would take it for the path with one slash


def _check_query_of_open_views() -> None:
    """Of views that admit callers it is checked after the credential, by `chassis.access`."""
    view = current_app.view_functions.get(request.endpoint or "")
    if view is not None and not hasattr(view, "alternatives"):
        query.refuse_undeclared()


def _finish(response: Response) -> Response:
    for name, value in _common_headers(g.get("trace")):
        response.headers.setdefault(name, value)
    response.headers.update(ratelimit.headers(g.get("rate_limits", {})))
    if response.mimetype == "text/html":
        for name, value in reference.PAGE_HEADERS.items():
            response.headers.setdefault(name, value)  # a page with forms says itself where they may go
    if response.status_code == 204:
        response.headers.pop("Content-Type", None)  # of nothing
    route = request.url_rule.rule if request.url_rule else "unmatched"
    seconds = time.perf_counter() - g.get("started", time.perf_counter())
    measure(current_app.name, request.method, route, request.path, response.status_code, seconds)
    return response


def finish(
    answer: Answer, match: RouteMatch, method: str, trace: tracing.Trace, counts: ratelimit.Counts, started: float
) -> Answer:
    """Add the common headers and measure: what `_finish` does for Flask's own responses."""
    length = ("Content-Length", str(len(answer.body)))
    headers = [*answer.headers, length, *_common_headers(trace), *ratelimit.headers(counts)]
    with tracing.resumed(trace):
        measure(match.service, method, match.route, match.path, answer.status, time.perf_counter() - started)
    return Answer(answer.status, headers, b"" if method == "HEAD" else answer.body)


def _common_headers(trace: tracing.Trace | None) -> list[tuple[str, str]]:
    return [*http_rules.common_headers(trace), ("Cache-Control", "no-store")]


def measure(service: str, method: str, route: str, path: str, status: int, seconds: float) -> None:
    """Count an answered request and write its line."""
    # A known method or none: what callers choose freely would grow without bound.
    count, duration = _meters(service, method if method in _METHODS else "other", route, status)
    count.inc()
    duration.observe(seconds)
    if not route.startswith(("/health", "/metrics")):
        log.info("request", method=method, path=path, status=status, ms=round(seconds * 1000, 2))


@lru_cache(maxsize=4096)
def _meters(service: str, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return metrics.REQUESTS.labels(service, method, route, status), metrics.REQUEST_SECONDS.labels(service, route)


def _operations(engine: Engine) -> Blueprint:
    """Endpoints for operators; the ingress does not publish them."""
    blueprint = Blueprint("operations", __name__)

    @blueprint.get("/health/live")
    def live() -> ResponseReturnValue:
        return jsonify(status="live")

    @blueprint.get("/health/ready")
    def ready() -> ResponseReturnValue:
        db.ping(engine)
        return jsonify(status="ready")

    @blueprint.get("/metrics")
    def exposed() -> ResponseReturnValue:
        return Response(metrics.exposition(), content_type="text/plain; version=0.0.4")

    reference.serve(blueprint, lambda: openapi.document([current_app]))
    return blueprint


def created(body: Any, endpoint: str, **values: Any) -> ResponseReturnValue:
    """201 with where the new thing is."""
    return jsonify(body), 201, {"Location": url_for(endpoint, **values)}


def versioned(body: Any, version: int, status: int = 200, location: str | None = None) -> ResponseReturnValue:
    """An answer about a resource that has a version, so that the caller can say If-Match next time."""
    headers = {"ETag": f'"{version}"'}
    return jsonify(body), status, headers | ({"Location": location} if location else {})


def expected_version() -> int | None:
    """The version the caller insists on by If-Match; None when any will do."""
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    tag = header.strip().removeprefix('"').removesuffix('"')
    if not tag.isascii() or not tag.isdigit() or len(tag) > 18:
        raise problems.Problem(412, detail="The resource has another version.")
    return int(tag)
