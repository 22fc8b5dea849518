"""Outbox rows that failed, over HTTP, for whoever runs the platform."""

from typing import cast

from flask import Blueprint, current_app, g, jsonify, request
from flask.typing import ResponseReturnValue

from accounts import schemas, usecases
from accounts.routes import PAGE, deps
from chassis.access import allow, page_size
from chassis.cursors import Cursors
from chassis.openapi import describe
from chassis.principals import Role, service_account, user
from chassis.problems import Problem

bp = Blueprint("outbox", __name__)

OPERATORS = (user(Role.ADMIN), service_account("credential:write", organization=False))
REDRIVEN = {"redriven": {"type": "boolean"}}
INTERNAL = "Users must be admins of an organization that is configured as internal (`INTERNAL_ORGANIZATIONS`)."


@bp.get("/v1/accounts/outbox/failed")
@allow(*OPERATORS)
@describe(
    "List failed outbox rows, oldest first",
    answers={200: schemas.FailedOutboxRowList},
    query=REDRIVEN | PAGE,
    note=INTERNAL,
    codes=("bad_filter",),
)
def list_failed_rows() -> ResponseReturnValue:
    redriven = _redriven()
    about = ("failed outbox rows", str(redriven))
    cursors, limit = cast("Cursors", current_app.extensions["cursors"]), page_size(request.args.get("limit"))
    [after] = cursors.read(about, request.args.get("next_cursor")) or [0]
    found = usecases.list_failed_rows(deps(), g.principal, after, limit + 1, redriven)
    shown = found[:limit]
    cursor = cursors.write(about, [shown[-1].id]) if len(found) > limit else None
    return jsonify(schemas.FailedOutboxRowList().dump({"data": shown, "next_cursor": cursor}))


@bp.post("/v1/accounts/outbox/failed/<row_id>/redrive")
@allow(*OPERATORS)
@describe(
    "Drive a failed outbox row again",
    answers={200: schemas.FailedOutboxRow},
    errors=(404,),
    note=f"{INTERNAL} The row is copied into a new one, `redriven_as`, and stays failed. It has one copy: a repetition "
    "changes nothing and is answered with the same one.",
)
def redrive_row(row_id: str) -> ResponseReturnValue:
    return jsonify(schemas.FailedOutboxRow().dump(usecases.redrive_row(deps(), g.principal, row_id)))


def _redriven() -> bool | None:
    given = request.args.get("redriven")
    if given not in (None, "true", "false"):
        raise Problem(400, "bad_filter", "redriven must be true or false.")
    return None if given is None else given == "true"
