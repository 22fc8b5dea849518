"""What an account holds, over HTTP: `GET …/positions` and `GET …/balances`."""

from dataclasses import asdict
from uuid import UUID

from flask import Blueprint, g, jsonify
from flask.typing import ResponseReturnValue

from chassis import ratelimit
from chassis.access import allow, charge
from chassis.openapi import describe
from chassis.principals import ANY_ROLE, api_key, service_account, user
from intents.routes import deps
from intents.schemas_holdings import Balances, Positions
from intents.usecases import Reader, holdings

bp = Blueprint("holdings", __name__)
_READERS = (user(*ANY_ROLE), api_key("intent:read"), service_account("intent:read"))
_ORGANIZATION = {"x-organization-id": "The organization whose account this is; for service accounts."}


@bp.get("/v1/accounts/<uuid:account_id>/positions")
@allow(*_READERS)
@describe("Positions of an account", answers={200: Positions}, errors=(403, 404), headers=_ORGANIZATION, heavy=True)
def positions(account_id: UUID) -> ResponseReturnValue:
    found = holdings.positions(deps(), Reader(g.principal, account_id), _charge_rows)
    return jsonify(Positions().dump({"account_id": account_id, "data": found}))


@bp.get("/v1/accounts/<uuid:account_id>/balances")
@allow(*_READERS)
@describe("Balances of an account", answers={200: Balances}, errors=(403, 404), headers=_ORGANIZATION)
def balances(account_id: UUID) -> ResponseReturnValue:
    found = holdings.balance(deps(), Reader(g.principal, account_id))
    return jsonify(Balances().dump({"account_id": account_id, **asdict(found)}))


def _charge_rows(count: int) -> None:
    charge(ratelimit.units_of_rows(count))
