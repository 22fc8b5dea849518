"""What an account holds, as its broker last said: `GET …/positions` and `GET …/balances`.

Read from our own tables: the reconciler asks the brokers, so no reader ever waits for one. `reconciled_at` and
`updated_at` say how old the answer is.
"""

from typing import Any, cast
from uuid import UUID

from flask import Blueprint, current_app, g, jsonify
from flask.typing import ResponseReturnValue
from marshmallow import Schema, fields

from chassis import ratelimit
from chassis.access import allow, charge
from chassis.openapi import describe
from chassis.principals import ANY_ROLE, api_key, service_account, user
from intents import usecases
from intents.execution import watching
from intents.usecases.reads import Reader, visible

bp = Blueprint("holdings", __name__)
_READERS = (user(*ANY_ROLE), api_key("intent:read"), service_account("intent:read"))
_ORGANIZATION = {"x-organization-id": "The organization whose account this is; for service accounts."}


class _Position(Schema):
    symbol = fields.String()
    quantity = fields.String(metadata={"description": "Negative when short."})
    average_entry_price = fields.String(allow_none=True)
    last_price = fields.String(allow_none=True)
    market_value = fields.String(allow_none=True)
    unrealized_profit = fields.String(allow_none=True)
    updated_at = fields.DateTime()
    reconciled_at = fields.DateTime(allow_none=True)


class Positions(Schema):
    account_id = fields.UUID()
    data = fields.List(fields.Nested(_Position))


class Balances(Schema):
    account_id = fields.UUID()
    currency = fields.String(allow_none=True)
    cash = fields.String(allow_none=True)
    equity = fields.String(allow_none=True)
    buying_power = fields.String(allow_none=True)
    updated_at = fields.DateTime(allow_none=True, metadata={"description": "Null: the broker was not asked yet."})


def _moments(row: dict[str, Any]) -> dict[str, Any]:
    """Moments as the rest of the API writes them."""
    return {
        name: value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value
        for name, value in row.items()
    }


@bp.get("/v1/accounts/<uuid:account_id>/positions")
@allow(*_READERS)
@describe("Positions of an account", answers={200: Positions}, errors=(403, 404), headers=_ORGANIZATION, heavy=True)
def positions(account_id: UUID) -> ResponseReturnValue:
    with _deps().engine.connect() as tx:
        visible(tx, Reader(g.principal, account_id))
        charge(ratelimit.units_of_rows(watching.position_count(tx, account_id)))
        rows = watching.positions(tx, account_id)
    return jsonify(account_id=str(account_id), data=[_shown(row) for row in rows])


@bp.get("/v1/accounts/<uuid:account_id>/balances")
@allow(*_READERS)
@describe("Balances of an account", answers={200: Balances}, errors=(403, 404), headers=_ORGANIZATION)
def balances(account_id: UUID) -> ResponseReturnValue:
    with _deps().engine.connect() as tx:
        visible(tx, Reader(g.principal, account_id))
        row = watching.balance(tx, account_id)
    nothing: dict[str, Any] = dict.fromkeys(("currency", "cash", "equity", "buying_power", "updated_at"))
    return jsonify(account_id=str(account_id), **_shown(row or nothing))


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    numbers = {name: format(value, "f") for name, value in row.items() if hasattr(value, "as_tuple")}
    return {**_moments(row), **numbers}


def _deps() -> usecases.Deps:
    return cast("usecases.Deps", current_app.extensions["deps"])
