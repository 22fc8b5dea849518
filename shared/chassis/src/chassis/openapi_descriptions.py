"""What every field and parameter of the OpenAPI document means, by name.

A field with the same meaning everywhere is described once, under its name; one that means something else in a schema,
under `Schema.field`. A parameter in a path is under `path.name`, a field of an answer without a schema under the
operation's id. What a schema says of a field itself comes first. Services add their own tables as
`app.extensions["descriptions"]`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flask import Flask

Texts = Mapping[str, str]

COMMON: Texts = {
    "account_id": "Id of the trading account.",
    "actor": "Who did it.",
    "created_at": "When it was created.",
    "data": "The rows of this page, or all of them where the answer has no `next_cursor`.",
    "disabled": "Whether it is switched off.",
    "environment": "`paper` trades with play money, `live` with real money.",
    "limit": "Rows of a page, 1 to 500; 50 if it is left out.",
    "name": "A name for people to recognize it by.",
    "next_cursor": "Pass it as `next_cursor` to read the next page; null on the last one.",
    "order_side": "Whether to buy or to sell.",
    "organization_id": "Id of the organization that it belongs to.",
    "request_id": "`X-Request-Id` of the request, as logs and problems name it; null if there was none.",
    "symbol": "What is traded, in upper case, such as `AAPL`.",
    "updated_at": "When it was last changed.",
    "version": "Counts its changes from 1; the `ETag` of an answer is this number in quotes.",
    "path.organization_id": "Id of the organization.",
    "path.symbol": "What is traded, such as `AAPL`; trimmed and read in upper case. A slash may stand as it is.",
    "query.next_cursor": "The `next_cursor` of the page before; without it the list begins.",
    "Problem.type": "The kind of problem: `urn:tip:problem:` and the `code`.",
    "Problem.title": "The phrase of the status.",
    "Problem.status": "The HTTP status.",
    "Problem.detail": "What is wrong with this request, for people.",
    "Problem.instance": "The path of the request, cut after 256 characters.",
    "Problem.code": "The kind of problem, for programs: it never changes.",
    "Problem.errors": "What is wrong with which field; up to 20.",
    "Problem.reasons": "The controls that refused the command, each with `code`, `control`, `version` and `message`.",
    "Problem.results": "Of `batch_rejected`: what became of each command, as in the answer of a batch.",
    "Problem.intent_id": "Of `client_id_taken`: the intent that has the `client_id`.",
    "Problem.backlog": "Of `overloaded`: whose commands wait, those of the `account`, or those at its `broker`.",
    "Problem.entitlement": "Of `entitlement_required`: the entitlement that is lacking.",
    "ProblemError.pointer": "JSON pointer (RFC 6901) to the field in the body.",
    "ProblemError.code": "What is wrong with the field, for programs.",
    "ProblemError.message": "What is wrong with the field, for people.",
}
SECURITY: Texts = {
    "apiKey": "An API key of an organization, `tip_paper_…` or `tip_live_…`. Never beside another credential.",
    "bearer": "The token of a person who signed in, for one organization.",
    "clientCredentials": "The token of a service account; `x-organization-id` names the organization it acts for.",
}


def texts_of(apps: Sequence[Flask]) -> dict[str, str]:
    """The table of all apps. Two texts for one field would make the document depend on the order of the apps."""
    found = dict(COMMON)
    for app in apps:
        table: Texts = app.extensions.get("descriptions", {})
        if twice := {name for name, text in table.items() if found.get(name, text) != text}:
            raise ValueError(f"described twice: {', '.join(sorted(twice))}")
        found |= table
    return found


def describe_document(document: dict[str, Any], texts: Texts) -> None:
    """Give every field and parameter that has no description the one of the table."""
    for owner, schema in document["components"]["schemas"].items():
        _describe_fields(schema, owner, texts)
    for operation in _operations(document):
        _describe_fields([operation.get("requestBody"), operation["responses"]], operation["operationId"], texts)
        for parameter in operation["parameters"]:
            _describe_parameter(parameter, texts)


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from path.values()


def _describe_fields(node: Any, owner: str, texts: Texts) -> None:
    for inner in node if isinstance(node, list) else node.values() if isinstance(node, dict) else ():
        _describe_fields(inner, owner, texts)
    if not isinstance(node, dict) or node.get("type") != "object":  # a field may be called `type` or `properties`
        return
    for name, field in node.get("properties", {}).items():
        if text := texts.get(f"{owner}.{name}") or texts.get(name):
            field.setdefault("description", text)


def _describe_parameter(parameter: dict[str, Any], texts: Texts) -> None:
    """What its schema says of it is said of the parameter: readers look there."""
    name = parameter["name"]
    text = parameter["schema"].pop("description", None) or texts.get(f"{parameter['in']}.{name}") or texts.get(name)
    if text:
        parameter.setdefault("description", text)
