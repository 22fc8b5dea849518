"""What the routes share."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from flask import current_app, g, jsonify
from flask.typing import ResponseReturnValue
from marshmallow import Schema

from chassis import cursors
from chassis.access import page_size
from chassis.principals import Principal
from chassis.tokens import is_name
from chassis.web import query
from identity import model, usecases

Item = TypeVar("Item")
PAGE_QUERY: Mapping[str, Mapping[str, Any]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": cursors.MAX_LIMIT, "default": cursors.DEFAULT_LIMIT},
    "next_cursor": {"type": "string"},
}


def deps() -> usecases.Deps:
    return cast("usecases.Deps", current_app.extensions["deps"])


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
    place: Callable[[Item], tuple[datetime, object]],
    schema: type[Schema],
    to_id: Callable[[str], Any] = UUID,
) -> ResponseReturnValue:
    """One page of a list in order of creation, and the cursor of the next."""
    asked = query("limit", "next_cursor")
    limit = page_size(asked("limit"))
    known = cast("cursors.Cursors", current_app.extensions["cursors"])
    position = known.read(about, asked("next_cursor"))
    after = (datetime.fromisoformat(position[0]), to_id(position[1])) if position else None
    found = read(after, limit + 1)
    shown, more = found[:limit], len(found) > limit
    cursor = None
    if more:
        created_at, last_id = place(shown[-1])
        cursor = known.write(about, [created_at.isoformat(), str(last_id)])
    return jsonify(data=schema(many=True).dump(shown), next_cursor=cursor)
