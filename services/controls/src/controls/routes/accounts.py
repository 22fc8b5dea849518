"""Controls of an account: its trading state and its limits."""

from uuid import UUID

from flask import g
from flask.typing import ResponseReturnValue

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
    switched,
)


@bp.get(ACCOUNT)
@readers
@describe("Read the trading state of an account", answers={200: schemas.AccountSwitch}, errors=READ_ERRORS)
def get_account_switch(account_id: UUID) -> ResponseReturnValue:
    return shown(schemas.AccountSwitch, usecases.get(deps(), g.principal, model.AccountSwitch, account_id))


@bp.put(ACCOUNT)
@editors
@describe_change(
    "Create or replace the trading state of an account",
    body=schemas.SwitchRequest,
    answers={200: schemas.AccountSwitch, 201: schemas.AccountSwitch},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def put_account_switch(account_id: UUID) -> ResponseReturnValue:
    return switched(schemas.AccountSwitch, model.AccountSwitch, ".get_account_switch", account_id=account_id)


@bp.delete(ACCOUNT)
@editors
@describe_removal("Remove the trading state of an account")
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
@describe_change(
    "Create or replace the limits of an account",
    body=schemas.AccountLimitsRequest,
    answers={200: schemas.AccountLimits, 201: schemas.AccountLimits},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def put_account_limits(account_id: UUID) -> ResponseReturnValue:
    values = body(schemas.AccountLimitsRequest, account_id)
    control, new = usecases.put(
        deps(), g.principal, model.AccountLimits, account_id, None, values, expected=expected_version()
    )
    return stored(schemas.AccountLimits, control, new, ".get_account_limits", account_id=account_id)


@bp.delete(f"{ACCOUNT}/limits")
@editors
@describe_removal("Remove the limits of an account")
def delete_account_limits(account_id: UUID) -> ResponseReturnValue:
    usecases.delete(deps(), g.principal, model.AccountLimits, account_id, expected=expected_version())
    return "", 204
