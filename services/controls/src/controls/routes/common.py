"""What the routes share."""

from collections.abc import Mapping
from functools import partial
from typing import Any, cast
from uuid import UUID

from flask import Blueprint, current_app, g, request, url_for
from flask.typing import ResponseReturnValue
from marshmallow import Schema

from chassis import openapi
from chassis.access import allow
from chassis.principals import ANY_ROLE, Role, api_key, service_account, user
from chassis.web import expected_version, versioned
from controls import model, usecases
from controls.paths import Segment
from controls.schemas import SwitchRequest

IF_MATCH = {"If-Match": 'The version to change, such as "3"; 412 if it is another by now.'}

_PREMIUM = ("entitlement_required",)
describe = partial(
    openapi.describe, codes=_PREMIUM, note=f"The organization needs the `{model.CONTROLS_PREMIUM}` entitlement."
)
describe_change = partial(
    openapi.describe,
    codes=_PREMIUM,
    note=f"The organization needs the `{model.CONTROLS_PREMIUM}` entitlement, unless the control only becomes looser.",
)
describe_removal = partial(openapi.describe, answers={204: None}, errors=(404, 412, 422), headers=IF_MATCH)
bp = Blueprint("controls", __name__)
bp.record_once(lambda state: state.app.url_map.converters.update(segment=Segment))

ACCOUNT = "/v1/controls/accounts/<uuid:account_id>"

readers = allow(user(*ANY_ROLE), api_key("control:read"), service_account("control:read"))
editors = allow(user(Role.ADMIN), api_key("control:edit"))

READ_ERRORS = (404, 422)
WRITE_ERRORS = (404, 412, 413, 415, 422)


def deps() -> usecases.Deps:
    return cast("usecases.Deps", current_app.extensions["deps"])


def body(schema: type[Schema], account_id: UUID | None) -> Any:
    """The request's body, validated only once the caller may use the account."""
    usecases.admit(deps(), g.principal, account_id)
    return schema().load(request.get_json())


def shown(schema: type[Schema], control: model.Control, **besides: Any) -> ResponseReturnValue:
    """`besides` is what the answer has beside the control."""
    return versioned({**schema().dump(control), **besides}, control.version)


def switched(
    schema: type[Schema], kind: type[model.AccountSwitch] | type[model.OrganizationSwitch], endpoint: str, **where: Any
) -> ResponseReturnValue:
    """Put a trading state; `cancel_open` is a command that goes with it, and no part of it."""
    account_id = where.get("account_id")
    values = body(SwitchRequest, account_id)
    if not values.pop("cancel_open"):
        put = usecases.put(deps(), g.principal, kind, account_id, None, values, expected=expected_version())
        return stored(schema, *put, endpoint, **where)
    control, new, operation_id = usecases.halt_and_cancel(
        deps(), g.principal, kind, account_id, values, expected=expected_version()
    )
    shown = {**schema().dump(control), "bulk_operation_id": str(operation_id)}
    return versioned(shown, control.version, 201 if new else 200, url_for(endpoint, **where) if new else None)


def stored(
    schema: type[Schema],
    control: model.Control,
    created: bool,
    endpoint: str,
    besides: Mapping[str, Any] | None = None,
    **where: Any,
) -> ResponseReturnValue:
    location = url_for(endpoint, **where) if created else None
    body = {**schema().dump(control), **(besides or {})}
    return versioned(body, control.version, 201 if created else 200, location)
