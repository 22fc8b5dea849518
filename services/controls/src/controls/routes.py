"""controls over HTTP."""

from functools import partial
from typing import Any, cast
from uuid import UUID

from flask import Blueprint, current_app, g, jsonify, request, url_for
from flask.typing import ResponseReturnValue
from marshmallow import Schema

from chassis import cursors, openapi
from chassis.access import allow, page_size
from chassis.principals import ANY_ROLE, Role, api_key, service_account, user
from chassis.web import expected_version, versioned
from controls import model, schemas, usecases
from controls.paths import Segment

describe = partial(openapi.describe, note=f"The organization needs the `{model.CONTROLS_PREMIUM}` entitlement.")
bp = Blueprint("controls", __name__)
bp.record_once(lambda state: state.app.url_map.converters.update(segment=Segment))

STATUSES: dict[type[Exception], int] = {
    model.AccountNotFound: 404,
    model.ControlNotFound: 404,
    model.WrongEnvironment: 403,
    model.EntitlementRequired: 403,
    model.VersionMismatch: 412,
    model.EmptyWindow: 422,
}

ORGANIZATION = "/v1/controls/organization"
ACCOUNT = "/v1/controls/accounts/<uuid:account_id>"
SYMBOLS = f"{ACCOUNT}/symbols"
SYMBOL = f"{SYMBOLS}/<segment:symbol>"

readers = allow(user(*ANY_ROLE), api_key("control:read"), service_account("control:read"))
editors = allow(user(Role.ADMIN), api_key("control:edit"), service_account("control:write"))
# An API key is of one environment, and the organization's switch stops both.
organization_editors = allow(user(Role.ADMIN), service_account("control:write"))

READ_ERRORS = (404, 422)
WRITE_ERRORS = (404, 412, 413, 415, 422)
IF_MATCH = {"If-Match": 'The version to change, such as "3"; 412 if it is another by now.'}


def deps() -> usecases.Deps:
    return cast("usecases.Deps", current_app.extensions["deps"])


def body(schema: type[Schema], account_id: UUID | None) -> Any:
    """The request's body, looked at only once the caller may use the account."""
    usecases.admit(deps(), g.principal, account_id)
    return schema().load(request.get_json())


def path_symbol(account_id: UUID, text: str) -> str:
    usecases.admit(deps(), g.principal, account_id)
    return schemas.symbol(text)


def shown(schema: type[Schema], control: model.Control) -> ResponseReturnValue:
    return versioned(schema().dump(control), control.version)


def stored(
    schema: type[Schema], control: model.Control, created: bool, endpoint: str, **where: Any
) -> ResponseReturnValue:
    location = url_for(endpoint, **where) if created else None
    return versioned(schema().dump(control), control.version, 201 if created else 200, location)


@bp.get(SYMBOL)
@readers
@describe("Read the manual control of a symbol", answers={200: schemas.SymbolManualControl}, errors=READ_ERRORS)
def get_symbol_manual(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    return shown(schemas.SymbolManualControl, usecases.get(deps(), g.principal, model.SymbolManual, account_id, name))


@bp.put(SYMBOL)
@editors
@describe(
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
@describe("Remove the manual control of a symbol", answers={204: None}, errors=(404, 412, 422), headers=IF_MATCH)
def delete_symbol_manual(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    usecases.delete(deps(), g.principal, model.SymbolManual, account_id, name, expected=expected_version())
    return "", 204


@bp.get(f"{SYMBOL}/time")
@readers
@describe("Read the time control of a symbol", answers={200: schemas.SymbolTimeControl}, errors=READ_ERRORS)
def get_symbol_time(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    return shown(schemas.SymbolTimeControl, usecases.get(deps(), g.principal, model.SymbolTime, account_id, name))


@bp.patch(f"{SYMBOL}/time")
@editors
@describe(
    "Create or patch the time control of a symbol",
    body=schemas.SymbolTimeControlRequest,
    answers={200: schemas.SymbolTimeControl, 201: schemas.SymbolTimeControl},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def patch_symbol_time(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    patch = body(schemas.SymbolTimeControlRequest, account_id)
    control, new = usecases.patch_time(deps(), g.principal, account_id, name, patch, expected=expected_version())
    return stored(schemas.SymbolTimeControl, control, new, ".get_symbol_time", account_id=account_id, symbol=name)


@bp.delete(f"{SYMBOL}/time")
@editors
@describe("Remove the time control of a symbol", answers={204: None}, errors=(404, 412, 422), headers=IF_MATCH)
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
@describe(
    "Create or replace the limits of a symbol",
    body=schemas.LimitsRequest,
    answers={200: schemas.SymbolLimits, 201: schemas.SymbolLimits},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def put_symbol_limits(account_id: UUID, symbol: str) -> ResponseReturnValue:
    name = path_symbol(account_id, symbol)
    values = body(schemas.LimitsRequest, account_id)
    control, new = usecases.put(
        deps(), g.principal, model.SymbolLimits, account_id, name, values, expected=expected_version()
    )
    return stored(schemas.SymbolLimits, control, new, ".get_symbol_limits", account_id=account_id, symbol=name)


@bp.delete(f"{SYMBOL}/limits")
@editors
@describe("Remove the limits of a symbol", answers={204: None}, errors=(404, 412, 422), headers=IF_MATCH)
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
    return jsonify(schemas.SymbolControlsList().dump({"data": page, "next_cursor": cursor}))


def pages() -> cursors.Cursors:
    return cast("cursors.Cursors", current_app.extensions["cursors"])


@bp.get(ACCOUNT)
@readers
@describe("Read the trading state of an account", answers={200: schemas.AccountSwitch}, errors=READ_ERRORS)
def get_account_switch(account_id: UUID) -> ResponseReturnValue:
    return shown(schemas.AccountSwitch, usecases.get(deps(), g.principal, model.AccountSwitch, account_id))


@bp.put(ACCOUNT)
@editors
@describe(
    "Create or replace the trading state of an account",
    body=schemas.SwitchRequest,
    answers={200: schemas.AccountSwitch, 201: schemas.AccountSwitch},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def put_account_switch(account_id: UUID) -> ResponseReturnValue:
    values = body(schemas.SwitchRequest, account_id)
    control, new = usecases.put(
        deps(), g.principal, model.AccountSwitch, account_id, None, values, expected=expected_version()
    )
    return stored(schemas.AccountSwitch, control, new, ".get_account_switch", account_id=account_id)


@bp.delete(ACCOUNT)
@editors
@describe("Remove the trading state of an account", answers={204: None}, errors=(404, 412, 422), headers=IF_MATCH)
def delete_account_switch(account_id: UUID) -> ResponseReturnValue:
    usecases.delete(deps(), g.principal, model.AccountSwitch, account_id, expected=expected_version())
    return "", 204


@bp.get(f"{ACCOUNT}/limits")
@readers
@describe("Read the limits of an account", answers={200: schemas.AccountLimits}, errors=READ_ERRORS)
def get_account_limits(account_id: UUID) -> ResponseReturnValue:
    return shown(schemas.AccountLimits, usecases.get(deps(), g.principal, model.AccountLimits, account_id))


@bp.put(f"{ACCOUNT}/limits")
@editors
@describe(
    "Create or replace the limits of an account",
    body=schemas.LimitsRequest,
    answers={200: schemas.AccountLimits, 201: schemas.AccountLimits},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def put_account_limits(account_id: UUID) -> ResponseReturnValue:
    values = body(schemas.LimitsRequest, account_id)
    control, new = usecases.put(
        deps(), g.principal, model.AccountLimits, account_id, None, values, expected=expected_version()
    )
    return stored(schemas.AccountLimits, control, new, ".get_account_limits", account_id=account_id)


@bp.delete(f"{ACCOUNT}/limits")
@editors
@describe("Remove the limits of an account", answers={204: None}, errors=(404, 412, 422), headers=IF_MATCH)
def delete_account_limits(account_id: UUID) -> ResponseReturnValue:
    usecases.delete(deps(), g.principal, model.AccountLimits, account_id, expected=expected_version())
    return "", 204


@bp.get(ORGANIZATION)
@readers
@describe("Read the trading state of the organization", answers={200: schemas.OrganizationSwitch}, errors=READ_ERRORS)
def get_organization_switch() -> ResponseReturnValue:
    return shown(schemas.OrganizationSwitch, usecases.get(deps(), g.principal, model.OrganizationSwitch, None))


@bp.put(ORGANIZATION)
@organization_editors
@describe(
    "Create or replace the trading state of the organization",
    body=schemas.SwitchRequest,
    answers={200: schemas.OrganizationSwitch, 201: schemas.OrganizationSwitch},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def put_organization_switch() -> ResponseReturnValue:
    values = body(schemas.SwitchRequest, None)
    control, new = usecases.put(
        deps(), g.principal, model.OrganizationSwitch, None, None, values, expected=expected_version()
    )
    return stored(schemas.OrganizationSwitch, control, new, ".get_organization_switch")


@bp.delete(ORGANIZATION)
@organization_editors
@describe("Remove the trading state of the organization", answers={204: None}, errors=(404, 412, 422), headers=IF_MATCH)
def delete_organization_switch() -> ResponseReturnValue:
    usecases.delete(deps(), g.principal, model.OrganizationSwitch, None, expected=expected_version())
    return "", 204


@bp.post(f"{ACCOUNT}/preview")
@readers
@describe(
    "Say whether a command would pass the controls, now or at a given time, and why not",
    body=schemas.PreviewRequest,
    answers={200: schemas.PreviewAnswer},
    errors=(404, 413, 415, 422),
)
def preview(account_id: UUID) -> ResponseReturnValue:
    asked = body(schemas.PreviewRequest, account_id)
    return jsonify(schemas.preview_answer(account_id, *usecases.preview(deps(), g.principal, account_id, asked)))
