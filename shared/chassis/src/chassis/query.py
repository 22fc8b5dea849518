"""Query parameters: an endpoint takes those that its `describe(...)` declares, each at most once.

`allow` and `anyone` check here after the credential, and the app itself for views that have neither, so no endpoint can
forget it. `instant` reads one that is a moment in time.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from flask import current_app, request
from marshmallow import ValidationError

from chassis.fields import Instant
from chassis.problems import Problem

_INSTANT = Instant()


def refuse_undeclared() -> None:
    """Raise the problem of a parameter that the endpoint of this request does not declare, or that is given twice."""
    if not request.query_string:
        return
    declared = _declared(current_app.view_functions[request.endpoint or ""])
    for name, values in request.args.lists():
        if name not in declared:
            takes = ", ".join(declared) or "none"
            raise Problem(400, "unknown_query", f"A query parameter is not one of this endpoint's: {takes}.")
        if len(values) > 1:
            raise Problem(400, "repeated_query", "A query parameter is given twice.")


def _declared(view: Any) -> Mapping[str, Any]:
    description = getattr(view, "description", None)
    return description.query if description else {}


def instant(query: Mapping[str, str], name: str) -> datetime | None:
    given = query.get(name)
    try:
        return None if given is None else _INSTANT.deserialize(given)
    except ValidationError:
        raise Problem(400, "bad_time", f"{name} must be an RFC 3339 date-time, such as 2026-01-31T09:30:00Z.") from None
