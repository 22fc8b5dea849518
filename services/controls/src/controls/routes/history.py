"""What changed about the controls, and who changed it."""

from typing import Any
from uuid import UUID

from flask import g, jsonify, request
from flask.typing import ResponseReturnValue

from chassis import cursors
from chassis.access import page_size
from controls import schemas, usecases
from controls.routes.common import ACCOUNT, READ_ERRORS, bp, deps, describe, readers
from controls.routes.organization import ORGANIZATION
from controls.routes.symbols import pages, path_symbol

_PAGE: dict[str, dict[str, Any]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": cursors.MAX_LIMIT, "default": cursors.DEFAULT_LIMIT},
    "next_cursor": {"type": "string"},
}


@bp.get(f"{ACCOUNT}/history")
@readers
@describe(
    "List the changes of an account's controls, newest first",
    answers={200: schemas.ControlChanges},
    errors=READ_ERRORS,
    query={"symbol": {"type": "string"}, **_PAGE},
    schemas=schemas.CONTROL_VALUE,
)
def list_account_changes(account_id: UUID) -> ResponseReturnValue:
    usecases.admit(deps(), g.principal, account_id)
    given = request.args.get("symbol")
    return _page(account_id, None if given is None else path_symbol(account_id, given))


@bp.get(f"{ORGANIZATION}/history")
@readers
@describe(
    "List the changes of the organization's trading state, newest first",
    answers={200: schemas.ControlChanges},
    errors=READ_ERRORS,
    query=_PAGE,
    schemas=schemas.CONTROL_VALUE,
)
def list_organization_changes() -> ResponseReturnValue:
    usecases.admit(deps(), g.principal, None)
    return _page(None, None)


def _page(account_id: UUID | None, symbol: str | None) -> ResponseReturnValue:
    about = ("history", str(account_id or g.principal.organization_id), symbol or "")
    [before] = pages().read(about, request.args.get("next_cursor")) or [None]
    limit = page_size(request.args.get("limit"))
    page, more = usecases.history(deps(), g.principal, account_id, symbol, before, limit)
    cursor = pages().write(about, [page[-1].id]) if more else None
    return jsonify(schemas.ControlChanges().dump({"data": page, "next_cursor": cursor}))
