"""accounts over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from flask import Blueprint, current_app, g, jsonify, request, url_for
from flask.typing import ResponseReturnValue

import tip_brokers
from accounts import model, schemas, store, usecases
from chassis import cursors, web
from chassis.access import allow, charge, page_size
from chassis.openapi import describe
from chassis.principals import ANY_ROLE, Role, api_key, service_account, user
from chassis.problems import Problem, plain_text_errors

bp = Blueprint("accounts", __name__)

STATUSES: dict[type[Exception], int] = {
    model.NotFound: 404,
    model.WrongEnvironment: 403,
    model.OutsideBounds: 403,
    model.NotInternal: 403,
    model.PreconditionFailed: 412,
    model.LimitReached: 409,
    model.OpenIntents: 409,
    model.AccountClosing: 409,
    model.RehearsalOff: 422,
    tip_brokers.UnknownBroker: 409,
    model.QueueUnreadable: 500,
}

READ_ACCOUNTS = (user(*ANY_ROLE), api_key("account:read"), service_account("account:read"))
WRITE_ACCOUNTS = (user(Role.ADMIN), api_key("account:edit"), service_account("account:write"))
READ_CREDENTIALS = (user(*ANY_ROLE), api_key("credential:read"), service_account("credential:read"))
WRITE_CREDENTIALS = (user(Role.ADMIN), api_key("credential:edit"), service_account("credential:write"))

PAGE: dict[str, dict[str, Any]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": cursors.MAX_LIMIT, "default": cursors.DEFAULT_LIMIT},
    "next_cursor": {"type": "string"},
}
IF_MATCH = {"If-Match": "The ETag of the version that is meant to be changed; 412 if it has another by now."}
WRITE_ERRORS = (404, 412, 413, 415, 422)
TEST_UNITS = 10  # each is a login at a broker


def deps() -> usecases.Deps:
    return cast("usecases.Deps", current_app.extensions["deps"])


@bp.get("/v1/accounts/outbox/health")
@plain_text_errors
@allow(user(Role.ADMIN), service_account("credential:read", organization=False), unsuitable=401, not_member=403)
@describe("Report the health of the outbox", answers={200: schemas.OutboxHealthResponse}, errors=(500,))
def outbox_health() -> ResponseReturnValue:
    return jsonify(schemas.OutboxHealthResponse().dump(usecases.outbox_health(deps(), g.principal)))


@bp.get("/v1/brokers")
@allow(*READ_ACCOUNTS)
@describe("List the brokers that are installed, and what they can do", answers={200: schemas.BrokerList})
def list_brokers() -> ResponseReturnValue:
    return jsonify(schemas.BrokerList().dump({"data": tip_brokers.installed().values()}))


@bp.post("/v1/accounts")
@allow(*WRITE_ACCOUNTS)
@describe(
    "Create a trading account",
    body=schemas.NewAccount,
    answers={201: schemas.Account},
    errors=(409, 413, 415, 422),
    codes=("limit_reached", "rehearsal_off"),
)
def create_account() -> ResponseReturnValue:
    new = schemas.NewAccount().load(request.get_json())
    account = usecases.create_account(deps(), g.principal, new)
    return _account(account, 201, url_for("accounts.read_account", account_id=account.id))


@bp.get("/v1/accounts")
@allow(*READ_ACCOUNTS)
@describe("List trading accounts, oldest first", answers={200: schemas.AccountList}, query=PAGE)
def list_accounts() -> ResponseReturnValue:
    about = ("accounts", str(g.principal.organization_id), g.principal.environment or "")
    after, limit = _page(about)
    found = usecases.list_accounts(deps(), g.principal, after, limit + 1)
    return jsonify(schemas.AccountList().dump(_listed(about, found, limit)))


@bp.get("/v1/accounts/<uuid:account_id>")
@allow(*READ_ACCOUNTS)
@describe("Read a trading account", answers={200: schemas.Account}, errors=(404,))
def read_account(account_id: UUID) -> ResponseReturnValue:
    return _account(usecases.read_account(deps(), g.principal, account_id))


@bp.patch("/v1/accounts/<uuid:account_id>")
@allow(*WRITE_ACCOUNTS)
@describe(
    "Change a trading account",
    body=schemas.AccountChanges,
    answers={200: schemas.Account},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def change_account(account_id: UUID) -> ResponseReturnValue:
    usecases.read_account(deps(), g.principal, account_id)
    changes = schemas.AccountChanges().load(request.get_json())
    return _account(usecases.change_account(deps(), g.principal, account_id, changes, web.expected_version()))


@bp.post("/v1/accounts/<uuid:account_id>/disable")
@allow(*WRITE_ACCOUNTS)
@describe(
    "Disable a trading account",
    body=schemas.Disable,
    answers={200: schemas.Account},
    errors=WRITE_ERRORS,
    headers=IF_MATCH,
)
def disable_account(account_id: UUID) -> ResponseReturnValue:
    usecases.read_account(deps(), g.principal, account_id)
    reason = schemas.Disable().load(_optional_body())["reason"]
    return _account(usecases.disable_account(deps(), g.principal, account_id, reason, web.expected_version()))


@bp.post("/v1/accounts/<uuid:account_id>/enable")
@allow(*WRITE_ACCOUNTS)
@describe(
    "Enable a trading account",
    body=schemas.Enable,
    answers={200: schemas.Account},
    errors=(409, *WRITE_ERRORS),
    headers=IF_MATCH,
    codes=("account_closing",),
)
def enable_account(account_id: UUID) -> ResponseReturnValue:
    usecases.read_account(deps(), g.principal, account_id)
    schemas.Enable().load(_optional_body())
    return _account(usecases.enable_account(deps(), g.principal, account_id, web.expected_version()))


@bp.delete("/v1/accounts/<uuid:account_id>")
@allow(*WRITE_ACCOUNTS)
@describe(
    "Delete a trading account and its credentials",
    answers={202: schemas.Account, 204: None},
    errors=(404, 409, 412),
    query={"cancel_open": {"type": "boolean", "default": False}},
    headers=IF_MATCH,
    answer_headers=("Location",),
    note="202: its open intents are being canceled, and it is deleted when the broker has confirmed the last one.",
    codes=("open_intents",),
)
def delete_account(account_id: UUID) -> ResponseReturnValue:
    usecases.read_account(deps(), g.principal, account_id)
    expected, cancel_open = web.expected_version(), _cancel_open()
    closing = usecases.delete_account(deps(), g.principal, account_id, expected, cancel_open=cancel_open)
    if closing is None:
        return "", 204
    return _account(closing, 202, f"/v1/accounts/{account_id}/bulk-operations/{closing.closing_operation_id}")


def _cancel_open() -> bool:
    given = request.args.get("cancel_open")
    if given not in (None, "true", "false"):
        raise Problem(400, "bad_cancel_open", "cancel_open must be true or false.")
    return given == "true"


@bp.post("/v1/accounts/<uuid:account_id>/credentials")
@allow(*WRITE_CREDENTIALS)
@describe(
    "Add a broker credential",
    body=schemas.NewCredential,
    answers={201: schemas.Credential},
    errors=(404, 409, 413, 415, 422),
    schemas=schemas.SECRETS,
    codes=("limit_reached", "unknown_broker"),
)
def add_credential(account_id: UUID) -> ResponseReturnValue:
    account = usecases.read_account(deps(), g.principal, account_id)
    new = schemas.of_broker(schemas.NewCredential, account.broker).load(request.get_json())
    credential = usecases.add_credential(deps(), g.principal, account_id, new["label"], new["secret"])
    location = url_for("accounts.read_credential", account_id=account_id, credential_id=credential.id)
    return _credential(credential, 201, location)


@bp.get("/v1/accounts/<uuid:account_id>/credentials")
@allow(*READ_CREDENTIALS)
@describe("List broker credentials, oldest first", answers={200: schemas.CredentialList}, errors=(404,), query=PAGE)
def list_credentials(account_id: UUID) -> ResponseReturnValue:
    about = ("credentials", str(account_id))
    after, limit = _page(about)
    found = usecases.list_credentials(deps(), g.principal, account_id, after, limit + 1)
    return jsonify(schemas.CredentialList().dump(_listed(about, found, limit)))


@bp.get("/v1/accounts/<uuid:account_id>/credentials/<uuid:credential_id>")
@allow(*READ_CREDENTIALS)
@describe("Read a broker credential", answers={200: schemas.Credential}, errors=(404,))
def read_credential(account_id: UUID, credential_id: UUID) -> ResponseReturnValue:
    return _credential(usecases.read_credential(deps(), g.principal, account_id, credential_id))


@bp.put("/v1/accounts/<uuid:account_id>/credentials/<uuid:credential_id>/secret")
@allow(*WRITE_CREDENTIALS)
@describe(
    "Rotate a broker credential's secret",
    body=schemas.NewSecret,
    answers={200: schemas.Credential},
    errors=(*WRITE_ERRORS, 409),
    schemas=schemas.SECRETS,
    headers=IF_MATCH,
    codes=("unknown_broker",),
)
def rotate_secret(account_id: UUID, credential_id: UUID) -> ResponseReturnValue:
    broker = usecases.read_credential(deps(), g.principal, account_id, credential_id).broker
    secret = schemas.of_broker(schemas.NewSecret, broker).load(request.get_json())["secret"]
    return _credential(
        usecases.rotate_secret(deps(), g.principal, account_id, credential_id, secret, web.expected_version())
    )


@bp.post("/v1/accounts/<uuid:account_id>/credentials/<uuid:credential_id>/test")
@allow(*WRITE_CREDENTIALS)
@describe(
    "Test a broker credential",
    answers={202: schemas.Credential},
    errors=(404, 409),
    note="Logs in at the broker with the stored secret. It stays in use meanwhile; `test_status` says what came of it.",
    codes=("unknown_broker",),
)
def request_test(account_id: UUID, credential_id: UUID) -> ResponseReturnValue:
    charge(TEST_UNITS)
    return _credential(usecases.request_test(deps(), g.principal, account_id, credential_id), 202)


@bp.delete("/v1/accounts/<uuid:account_id>/credentials/<uuid:credential_id>")
@allow(*WRITE_CREDENTIALS)
@describe("Delete a broker credential", answers={204: None}, errors=(404, 412), headers=IF_MATCH)
def delete_credential(account_id: UUID, credential_id: UUID) -> ResponseReturnValue:
    usecases.delete_credential(deps(), g.principal, account_id, credential_id, web.expected_version())
    return "", 204


def _account(account: model.Account, status: int = 200, location: str | None = None) -> ResponseReturnValue:
    return web.versioned(schemas.Account().dump(account), account.version, status, location)


def _credential(credential: model.Credential, status: int = 200, location: str | None = None) -> ResponseReturnValue:
    return web.versioned(schemas.Credential().dump(credential), credential.version, status, location)


def _optional_body() -> Any:
    return request.get_json() if request.get_data(cache=True) else {}


def _page(about: tuple[str, ...]) -> tuple[store.Position | None, int]:
    given = request.args.get("next_cursor")
    written = cast("cursors.Cursors", current_app.extensions["cursors"]).read(about, given)
    after = (datetime.fromisoformat(written[0]), UUID(written[1])) if written else None
    return after, page_size(request.args.get("limit"))


def _listed(
    about: tuple[str, ...], found: Sequence[model.Account] | Sequence[model.Credential], limit: int
) -> dict[str, Any]:
    """`found` has one more than `limit` if there is a next page."""
    shown, more = found[:limit], len(found) > limit
    written = cast("cursors.Cursors", current_app.extensions["cursors"])
    cursor = written.write(about, [shown[-1].created_at.isoformat(), str(shown[-1].id)]) if more else None
    return {"data": shown, "next_cursor": cursor}
