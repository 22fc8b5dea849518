"""What the routes share."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from flask import current_app, g, jsonify, request
from flask.typing import ResponseReturnValue
from marshmallow import Schema

from chassis import cursors, tenancy
from chassis.access import page_size
from chassis.principals import Kind, Principal
from chassis.tokens import is_name
from identity import model, usecases

Item = TypeVar("Item")
PAGE_QUERY: Mapping[str, Mapping[str, Any]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": cursors.MAX_LIMIT, "default": cursors.DEFAULT_LIMIT},
    "next_cursor": {"type": "string"},
}


def deps() -> usecases.Deps:
    _serve_operator()
    return cast("usecases.Deps", current_app.extensions["deps"])


def _serve_operator() -> None:
    """An operator is served the organization in the path, or all; keys are of the one in the header."""
    principal: Principal | None = g.get("principal")
    if principal is None or principal.kind is not Kind.SERVICE_ACCOUNT:
        return
    if named := (request.view_args or {}).get("organization_id"):
        tenancy.serve(named)
    elif request.blueprint != "api_keys":
        tenancy.serve_all()


def caller() -> Principal:
    return cast("Principal", g.principal)


def own_organization() -> UUID:
    """The caller's organization; routes that use it admit nobody without one."""
    return cast("UUID", caller().organization_id)


def name_in_path(value: str) -> str:
    """A provider's id as it stands in a path; what cannot be one names nothing."""
    if not is_name(value):
        raise model.NotFound
    return value


def page(
    about: tuple[str, ...],
    read: Callable[[tuple[datetime, Any] | None, int], Sequence[Item]],
    position_of: Callable[[Item], tuple[datetime, object]],
    schema: type[Schema],
    to_id: Callable[[str], Any] = UUID,
) -> ResponseReturnValue:
    """One page of a list in order of creation, and the cursor of the next."""
    limit = page_size(request.args.get("limit"))
    codec = cast("cursors.Cursors", current_app.extensions["cursors"])
    position = codec.read(about, request.args.get("next_cursor"))
    after = (datetime.fromisoformat(position[0]), to_id(position[1])) if position else None
    found = read(after, limit + 1)
    shown, more = found[:limit], len(found) > limit
    cursor = None
    if more:
        created_at, last_id = position_of(shown[-1])
        cursor = codec.write(about, [created_at.isoformat(), str(last_id)])
    return jsonify(data=schema(many=True).dump(shown), next_cursor=cursor)
