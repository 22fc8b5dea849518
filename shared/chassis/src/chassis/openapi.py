"""OpenAPI 3.1 made from the routes themselves: their schemas, their `allow(...)` and what `describe(...)` adds.

@describe("Append an intent command", body=schemas.SubmitIntent, answers={201: schemas.Action}, errors=(404, 409, 422))
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask
from marshmallow import Schema
from werkzeug.routing import Rule

from chassis import openapi_headers
from chassis.openapi_choices import name_choices
from chassis.openapi_descriptions import SECURITY, describe_document, texts_of
from chassis.openapi_examples import add_examples, values_of
from chassis.openapi_parameters import parameters
from chassis.openapi_problems import PROBLEM_JSON, name_problems
from chassis.openapi_samples import add_samples, calls_of
from chassis.openapi_types import PROBLEMS, add_formats, describe_defaults, teach_fields
from chassis.principals import Alternative, Kind, who_may

View = TypeVar("View", bound=Callable[..., Any])
SchemaClass = type[Schema]
Answer = SchemaClass | Mapping[str, Any] | None
"""The schema of an answer in JSON, or what the document says of its content by media type; None: it has no body."""

_ID = {"type": "string", "format": "uuid"}
_PARAMETER = r"<(?:[^:<>]+:)?([^<>]+)>"
_TITLE = "Trading Intents Platform"
_VERSION = "0.1.0"
_SCHEMES = {
    Kind.USER: "bearer",
    Kind.SERVICE_ACCOUNT: "clientCredentials",
    Kind.API_KEY: "apiKey",
}


@dataclass(frozen=True)
class Description:
    summary: str
    body: SchemaClass | None = None
    answers: Mapping[int, Answer] = field(default_factory=dict)
    errors: tuple[int, ...] = ()
    query: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The schema of each parameter, and `required` if a request must have it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    form: bool = False
    """Whether the body is a form and not JSON."""
    note: str = ""
    """What else there is to know, beside who may call."""
    heavy: bool = False
    """Whether a request is so much work that a tenant gets only one such at a time."""
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the body refers to by name, beside marshmallow's schemas."""
    answer_headers: tuple[str, ...] = ()
    """Of answers that succeed, beside those that follow from status and schema."""
    codes: tuple[str, ...] = ()
    """Of problems, beside those that follow from the form of the operation."""
    reads_only: bool = False
    """Whether it commits nothing to the database although its method is not GET."""

    def writes(self, method: str) -> bool:
        return method.lower() != "get" and not self.reads_only


@dataclass(frozen=True)
class Route:
    """A route that is not Flask's. Parameters of its path are ids; `content` is its answer, by media type."""

    path: str
    name: str
    tag: str
    description: Description
    alternatives: tuple[Alternative, ...]
    content: Mapping[str, Any]
    schemas: Mapping[str, Mapping[str, Any]]
    """What `content` refers to."""
    method: str = "get"
    python_call: str = ""
    """Of the SDK, for its samples."""


def describe(
    summary: str,
    *,
    body: SchemaClass | None = None,
    answers: Mapping[int, Answer],
    errors: tuple[int, ...] = (),
    query: Mapping[str, Mapping[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
    form: bool = False,
    note: str = "",
    heavy: bool = False,
    schemas: Mapping[str, Mapping[str, Any]] | None = None,
    answer_headers: tuple[str, ...] = (),
    codes: tuple[str, ...] = (),
    reads_only: bool = False,
) -> Callable[[View], View]:
    """Say what a route takes and answers; routes without it are not in the document.

    `errors` are the statuses of problems; a refusal in another form is one of the `answers`. `heavy` is not for the
    document but for the front that hands out threads, which finds it with `heavy_paths`.
    """

    def decorate(view: View) -> View:
        view.description = Description(  # type: ignore[attr-defined]
            summary,
            body,
            answers,
            errors,
            query or {},
            headers or {},
            form,
            note,
            heavy,
            schemas or {},
            answer_headers,
            codes,
            reads_only,
        )
        return view

    return decorate


def heavy_paths(app: Flask) -> re.Pattern[bytes]:
    """Found at the end of a request's decoded target if the view that answers it is `heavy`."""
    rules = [rule for rule in app.url_map.iter_rules() if _is_heavy(app.view_functions[rule.endpoint])]
    alternatives = "|".join(map(_path_pattern, rules)) or "(?!)"  # which is found nowhere
    return re.compile(rf"(?:{alternatives})\Z".encode())


def _is_heavy(view: Any) -> bool:
    return hasattr(view, "description") and view.description.heavy


def _path_pattern(rule: Rule) -> str:
    parts = re.split(_PARAMETER, rule.rule)  # a literal, then by turns the name of a parameter and a literal
    return "".join(rule._converters[part].regex if place % 2 else re.escape(part) for place, part in enumerate(parts))


class _Names:
    """The name of each schema class in the document; of two with one name the second gets its service's in front."""

    def __init__(self) -> None:
        self._taken: dict[str, SchemaClass] = {}

    def __call__(self, schema: Any) -> str:
        cls = schema if isinstance(schema, type) else type(schema)
        name = cls.__name__.lstrip("_")  # what is private in Python is public here
        if self._taken.setdefault(name, cls) is cls:
            return name
        return cls.__module__.split(".")[0].capitalize() + name


def document(apps: Sequence[Flask], routes: Sequence[Route] = ()) -> dict[str, Any]:
    """One document for all the apps, and for what is served otherwise."""
    plugin = MarshmallowPlugin(schema_name_resolver=_Names())
    spec = APISpec(_TITLE, _VERSION, "3.1.0", plugins=[plugin], servers=[{"url": "/"}])
    teach_fields(plugin)
    for name, header in openapi_headers.components():
        spec.components.header(name, header)
    _add_security(spec, apps, routes)
    _add_schemas(spec, PROBLEMS)
    for app in apps:
        for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
            view = app.view_functions[rule.endpoint]
            if hasattr(view, "description"):
                _add_schemas(spec, view.description.schemas)
                spec.path(path=_template(rule), operations=_operations(rule, view, app.name))
    for route in routes:
        _add_schemas(spec, route.schemas)
        spec.path(path=route.path, operations={route.method: _other_operation(route)})
    made: dict[str, Any] = json.loads(json.dumps(spec.to_dict()))  # so that no two places share an object
    add_formats(made)
    describe_document(made, texts_of(apps))
    describe_defaults(made["components"]["schemas"])
    name_choices(made["components"]["schemas"])
    add_examples(made, values_of(apps))
    add_samples(made, calls_of(apps) | {route.name: route.python_call for route in routes})
    return made


def _add_schemas(spec: APISpec, schemas: Mapping[str, Mapping[str, Any]]) -> None:
    for name in schemas.keys() - spec.components.schemas.keys():
        spec.components.schema(name, deepcopy(dict(schemas[name])))


def _template(rule: Rule) -> str:
    """Flask's `<uuid:account_id>` as OpenAPI's `{account_id}`."""
    return re.sub(_PARAMETER, r"{\1}", rule.rule)


def _operations(rule: Rule, view: Any, tag: str) -> dict[str, Any]:
    described: Description = view.description
    alternatives: tuple[Alternative, ...] = getattr(view, "alternatives", ())
    path = {name: _path_schema(rule, name) for name in sorted(rule.arguments)}
    operation = {
        **_operation(rule.endpoint.replace(".", "_"), tag, described, alternatives),
        "parameters": parameters(path, described.query, described.headers),
        "responses": _responses(view, described, alternatives),
    }
    if described.body:
        media_type = "application/x-www-form-urlencoded" if described.form else "application/json"
        operation["requestBody"] = {"required": True, "content": {media_type: {"schema": described.body}}}
    [method] = (rule.methods or set()) - {"HEAD", "OPTIONS"}
    name_problems(operation, alternatives, described.codes, writes=described.writes(method))
    return {method.lower(): operation}


def _other_operation(route: Route) -> dict[str, Any]:
    path = dict.fromkeys(re.findall(r"{([^{}]+)}", route.path), _ID)
    answers = _responses(None, route.description, route.alternatives)
    [done] = route.description.answers
    answers[str(done)]["content"] = dict(route.content)
    operation = {
        **_operation(route.name, route.tag, route.description, route.alternatives),
        "parameters": parameters(path, route.description.query, route.description.headers),
        "responses": answers,
    }
    name_problems(operation, route.alternatives, route.description.codes, writes=route.description.writes(route.method))
    return operation


def _operation(name: str, tag: str, described: Description, alternatives: tuple[Alternative, ...]) -> dict[str, Any]:
    return {
        "summary": described.summary,
        "operationId": name,
        "tags": [tag],
        "description": " ".join(filter(None, (_who(alternatives), described.note))),
        "security": [{_SCHEMES[alternative.kind]: _grants(alternative)} for alternative in alternatives],
    }


def _grants(alternative: Alternative) -> list[str]:
    """The scope of a service account or the permission of an API key; of users the roles are alternatives."""
    return [alternative.grant] if alternative.grant else []


def _who(alternatives: tuple[Alternative, ...]) -> str:
    return who_may(alternatives) if alternatives else "No credential needed."


def _path_schema(rule: Rule, name: str) -> dict[str, Any]:
    is_id = type(rule._converters[name]).__name__ == "_PathId"
    return _ID if is_id else {"type": "string", "minLength": 1}


def _responses(view: Any, described: Description, alternatives: tuple[Alternative, ...]) -> dict[str, Any]:
    usual = (400, 401, 403, 429, 503) if alternatives else (400, 429, 503)
    problems = dict.fromkeys(sorted({*described.errors, *usual} - described.answers.keys()), _error_content(view))
    answers: dict[str, Any] = {}
    for status, answer in {**described.answers, **problems}.items():
        headers = openapi_headers.of_answer(status, answer, described.answer_headers, is_counted=bool(alternatives))
        answers[str(status)] = {"headers": headers}
        if answer is not None:
            content = answer if isinstance(answer, Mapping) else {"application/json": {"schema": answer}}
            answers[str(status)]["content"] = dict(content)
    return answers


def _error_content(view: Any) -> dict[str, Any]:
    if hasattr(view, "plain_text_errors"):
        return {"text/plain": {"schema": {"type": "string"}}}
    return {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def _add_security(spec: APISpec, apps: Sequence[Flask], routes: Sequence[Route]) -> None:
    flow = {"clientCredentials": {"tokenUrl": "/oauth/token", "scopes": _scopes(apps, routes)}}
    schemes: Mapping[str, dict[str, Any]] = {
        "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "clientCredentials": {"type": "oauth2", "flows": flow},
    }
    for name, scheme in schemes.items():
        spec.components.security_scheme(name, {**scheme, "description": SECURITY[name]})


def _scopes(apps: Sequence[Flask], routes: Sequence[Route]) -> dict[str, str]:
    """What each scope is for, by the endpoints that want it."""
    views = [view for app in apps for view in app.view_functions.values() if hasattr(view, "description")]
    described = [(getattr(view, "alternatives", ()), view.description) for view in views]
    described += [(route.alternatives, route.description) for route in routes]
    found: dict[str, list[str]] = {}
    for alternatives, description in described:
        for alternative in alternatives:
            if alternative.kind is Kind.SERVICE_ACCOUNT and alternative.grant:
                found.setdefault(alternative.grant, []).append(description.summary)
    return {scope: "; ".join(sorted(found[scope])) for scope in sorted(found)}
