"""The trading state of the organization."""

from flask import g
from flask.typing import ResponseReturnValue

from chassis.access import allow
from chassis.principals import Role, user
from chassis.web import expected_version
from controls import model, schemas, usecases
from controls.routes.common import (
    IF_MATCH,
    READ_ERRORS,
    WRITE_ERRORS,
    bp,
    deps,
    describe,
    describe_change,
    describe_removal,
    readers,
    shown,
    switched,
)

ORGANIZATION = "/v1/controls/organization"

# An API key is of one environment, and the organization's switch stops both.
organization_editors = allow(user(Role.ADMIN))


@bp.get(ORGANIZATION)
@readers
@describe("Read the trading state of the organization", answers={200: schemas.OrganizationSwitch}, errors=READ_ERRORS)
def get_organization_switch() -> ResponseReturnValue:
    return shown(schemas.OrganizationSwitch, usecases.get(deps(), g.principal, model.OrganizationSwitch, None))


@bp.put(ORGANIZATION)
@organization_editors
@describe_change(
    "Create or replace the trading state of the organization",
    body=schemas.SwitchRequest,
    answers={200: schemas.OrganizationSwitch, 201: schemas.OrganizationSwitch},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def put_organization_switch() -> ResponseReturnValue:
    return switched(schemas.OrganizationSwitch, model.OrganizationSwitch, ".get_organization_switch")


@bp.delete(ORGANIZATION)
@organization_editors
@describe_removal("Remove the trading state of the organization")
def delete_organization_switch() -> ResponseReturnValue:
    usecases.delete(deps(), g.principal, model.OrganizationSwitch, None, expected=expected_version())
    return "", 204
