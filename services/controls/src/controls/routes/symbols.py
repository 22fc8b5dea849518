"""Controls of a symbol: manual, by time of day, limits."""

from typing import cast
from uuid import UUID

from flask import current_app, g, jsonify, request
from flask.typing import ResponseReturnValue

from chassis import cursors
from chassis.access import page_size
from chassis.web import expected_version
from controls import model, schemas, usecases
from controls.routes.common import (
    ACCOUNT,
    IF_MATCH,
    READ_ERRORS,
    WRITE_ERRORS,
    body,
    bp,
    deps,
    describe,
    describe_change,
    describe_removal,
    editors,
    readers,
    shown,
    stored,
)

SYMBOLS = f"{ACCOUNT}/symbols"
SYMBOL = f"{SYMBOLS}/<segment:symbol>"


def path_symbol(account_id: UUID, text: str) -> str:
    usecases.admit(deps(), g.principal, account_id)
    return schemas.symbol(text)


@bp.get(SYMBOL)
@readers
@describe("Read the manual control of a symbol", answers={200: schemas.SymbolManualControl}, errors=READ_ERRORS)
def get_symbol_manual(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    return shown(schemas.SymbolManualControl, usecases.get(deps(), g.principal, model.SymbolManual, account_id, name))


@bp.put(SYMBOL)
@editors
@describe_change(
    "Create or replace the manual control of a symbol",
    body=schemas.SymbolManualControlRequest,
    answers={200: schemas.SymbolManualControl, 201: schemas.SymbolManualControl},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def put_symbol_manual(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    values = body(schemas.SymbolManualControlRequest, account_id)
    control, new = usecases.put(
        deps(), g.principal, model.SymbolManual, account_id, name, values, expected=expected_version()
    )
    return stored(schemas.SymbolManualControl, control, new, ".get_symbol_manual", account_id=account_id, symbol=name)


@bp.delete(SYMBOL)
@editors
@describe_removal("Remove the manual control of a symbol")
def delete_symbol_manual(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    usecases.delete(deps(), g.principal, model.SymbolManual, account_id, name, expected=expected_version())
    return "", 204


@bp.get(f"{SYMBOL}/time")
@readers
@describe("Read the time control of a symbol", answers={200: schemas.SymbolTimeControl}, errors=READ_ERRORS)
def get_symbol_time(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    control = usecases.get(deps(), g.principal, model.SymbolTime, account_id, name)
    return shown(schemas.SymbolTimeControl, control, **_zone(account_id))


@bp.patch(f"{SYMBOL}/time")
@editors
@describe_change(
    "Create or patch the time control of a symbol",
    body=schemas.SymbolTimeControlRequest,
    answers={200: schemas.SymbolTimeControl, 201: schemas.SymbolTimeControl},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def patch_symbol_time(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    patch = body(schemas.SymbolTimeControlRequest, account_id)
    zone, where = _zone(account_id), {"account_id": account_id, "symbol": name}
    control, new = usecases.patch_time(deps(), g.principal, account_id, name, patch, expected=expected_version())
    return stored(schemas.SymbolTimeControl, control, new, ".get_symbol_time", zone, **where)


def _zone(account_id: UUID) -> dict[str, str | None]:
    """In which zone the hours of a time control are."""
    return {"time_zone": usecases.time_zone(deps(), g.principal, account_id)}


@bp.delete(f"{SYMBOL}/time")
@editors
@describe_removal("Remove the time control of a symbol")
def delete_symbol_time(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    usecases.delete(deps(), g.principal, model.SymbolTime, account_id, name, expected=expected_version())
    return "", 204


@bp.get(f"{SYMBOL}/limits")
@readers
@describe("Read the limits of a symbol", answers={200: schemas.SymbolLimits}, errors=READ_ERRORS)
def get_symbol_limits(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    return shown(schemas.SymbolLimits, usecases.get(deps(), g.principal, model.SymbolLimits, account_id, name))


@bp.put(f"{SYMBOL}/limits")
@editors
@describe_change(
    "Create or replace the limits of a symbol",
    body=schemas.SymbolLimitsRequest,
    answers={200: schemas.SymbolLimits, 201: schemas.SymbolLimits},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def put_symbol_limits(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    values = body(schemas.SymbolLimitsRequest, account_id)
    control, new = usecases.put(
        deps(), g.principal, model.SymbolLimits, account_id, name, values, expected=expected_version()
    )
    return stored(schemas.SymbolLimits, control, new, ".get_symbol_limits", account_id=account_id, symbol=name)


@bp.delete(f"{SYMBOL}/limits")
@editors
@describe_removal("Remove the limits of a symbol")
def delete_symbol_limits(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    usecases.delete(deps(), g.principal, model.SymbolLimits, account_id, name, expected=expected_version())
    return "", 204


@bp.get(SYMBOLS)
@readers
@describe(
    "List the symbols that have a control",
    answers={200: schemas.SymbolControlsList},
    errors=READ_ERRORS,
    query={"next_cursor": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 500}},
)
def list_symbols(account_id: UUID) -> ResponseReturnValue:
    usecases.admit(deps(), g.principal, account_id)
    about = ("symbols", str(account_id))
    [after] = pages().read(about, request.args.get("next_cursor")) or [""]
    limit = page_size(request.args.get("limit"))
    page, more = usecases.list_symbols(deps(), g.principal, account_id, after, limit)
    cursor = pages().write(about, [page[-1].symbol]) if more else None
    answer = schemas.SymbolControlsList().dump({"data": page, "next_cursor": cursor})
    zone = _zone(account_id)
    for controls in answer["data"]:
        if controls["time"]:
            controls["time"] |= zone
    return jsonify(answer)


def pages() -> cursors.Cursors:
    return cast("cursors.Cursors", current_app.extensions["cursors"])
