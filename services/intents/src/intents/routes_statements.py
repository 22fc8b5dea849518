"""Statements of accounts, and the keys to verify them, over HTTP."""

import base64
from typing import Any
from uuid import UUID

from flask import Blueprint, Response, g, jsonify, request
from flask.typing import ResponseReturnValue

from chassis import ratelimit
from chassis.access import allow, anyone, charge
from chassis.openapi import describe
from chassis.openapi_types import json_object
from chassis.problems import Problem
from chassis.query import instant
from intents import model, usecases
from intents.routes import ORGANIZATION, READERS, deps

bp = Blueprint("statements", __name__)

_MOMENT: dict[str, Any] = {"type": "string", "format": "date-time"}
_NOTE = (
    "JSON lines: what the statement is about, one line for each entry of the log, and a signed head, which covers them "
    "all. It begins with the last entry before `from`, and ends with the first signed head after `to`, or the newest. "
    "docs/statement.md describes the file; `tip verify` checks it."
)
_EXAMPLE = (
    '{"statement":1,"account_id":"…","from":null,"to":null,"opening":{"sequence":0,"hash":"…"}}\n'
    '{"sequence":1,"previous_hash":"…","hash":"…","content":{…}}\n'
)
_KEYS = {"type": "array", "items": {"type": "object"}, "description": "JWKs of RFC 8037, found by `kid`."}
_CACHED = {"Cache-Control": "public, max-age=60"}


@bp.get("/v1/accounts/<uuid:account_id>/statement")
@allow(*READERS)
@describe(
    "The log of an account, as a file that proves itself",
    answers={200: {"application/jsonl": {"schema": {"type": "string"}, "example": _EXAMPLE}}},
    errors=(404, 409),
    query={
        "from": {**_MOMENT, "description": "Entries from this moment on; all if it is left out."},
        "to": {**_MOMENT, "description": "Entries before this moment; all if it is left out."},
    },
    headers=ORGANIZATION,
    note=_NOTE,
    heavy=True,
    codes=("statement_not_signed",),
)
def show_statement(account_id: UUID) -> ResponseReturnValue:
    chunks = usecases.statement(deps(), usecases.Reader(g.principal, account_id), _period, _charge_rows)
    named = {"Content-Disposition": f'attachment; filename="statement-{account_id}.jsonl"'}
    return Response(chunks, 200, named, content_type="application/jsonl")


def _period() -> model.Period:
    period = model.Period(instant(request.args, "from"), instant(request.args, "to"))
    if period.since and period.to and period.since >= period.to:
        raise Problem(400, "bad_time", "from must be before to.")
    return period


def _charge_rows(count: int) -> None:
    charge(ratelimit.units_of_rows(count))


@bp.get("/.well-known/log-jwks.json")
@anyone
@describe(
    "The public keys of signed heads",
    answers={200: json_object({"keys": _KEYS})},
    note="A key that signed once stays here for good.",
)
def show_log_signing_keys() -> ResponseReturnValue:
    keys = [_jwk(key_id, key) for key_id, key in usecases.log_signing_keys(deps()).items()]
    return jsonify(keys=keys), 200, _CACHED


def _jwk(key_id: str, key: bytes) -> dict[str, str]:
    """As RFC 8037 has it."""
    x = base64.urlsafe_b64encode(key).rstrip(b"=").decode()
    return {"kty": "OKP", "crv": "Ed25519", "kid": key_id, "use": "sig", "alg": "EdDSA", "x": x}
