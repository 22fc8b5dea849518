"""What an account holds and what that is worth, over HTTP."""

from functools import partial
from uuid import UUID

from flask import Blueprint, g, jsonify
from flask.typing import ResponseReturnValue

from chassis import ratelimit
from chassis.access import allow, charge
from chassis.openapi import describe
from intents.routes import ORGANIZATION, READERS, deps
from intents.schemas_holdings import Balances, Positions, Quote, Refresh, parse_symbol
from intents.usecases import Reader, holdings

bp = Blueprint("holdings", __name__)
REFRESH_UNITS = 10  # each is several requests to a broker


@bp.get("/v1/accounts/<uuid:account_id>/positions")
@allow(*READERS)
@describe("Positions of an account", answers={200: Positions}, errors=(403, 404), headers=ORGANIZATION, heavy=True)
def positions(account_id: UUID) -> ResponseReturnValue:
    found = holdings.positions(deps(), Reader(g.principal, account_id), _charge_rows)
    return jsonify(Positions().dump({"account_id": account_id, "data": found}))


@bp.get("/v1/accounts/<uuid:account_id>/balances")
@allow(*READERS)
@describe("Balances of an account", answers={200: Balances}, errors=(403, 404), headers=ORGANIZATION)
def balances(account_id: UUID) -> ResponseReturnValue:
    found = holdings.balance(deps(), Reader(g.principal, account_id))
    return jsonify({"account_id": str(account_id), **Balances().dump(found)})


@bp.get("/v1/accounts/<uuid:account_id>/quotes/<path:symbol>")
@allow(*READERS)
@describe(
    "The latest price of a symbol",
    answers={200: Quote},
    errors=(403, 404, 409, 422),
    headers=ORGANIZATION,
    note="A price that is too old is read again at the broker, which the answer waits for briefly.",
    codes=("limit_reached",),
)
def quote(account_id: UUID, symbol: str) -> ResponseReturnValue:
    found = holdings.quote(deps(), Reader(g.principal, account_id), partial(parse_symbol, symbol))
    return jsonify({"account_id": str(account_id), **Quote().dump(found)})


@bp.post("/v1/accounts/<uuid:account_id>/refresh")
@allow(*READERS)
@describe(
    "Read an account at its broker now",
    answers={202: Refresh},
    errors=(403, 404),
    headers=ORGANIZATION,
    note="Positions, balances, open orders and prices. What was read has an `as_of` after this request.",
)
def refresh(account_id: UUID) -> ResponseReturnValue:
    charge(REFRESH_UNITS)
    holdings.refresh(deps(), Reader(g.principal, account_id))
    return jsonify(Refresh().dump({"account_id": account_id})), 202


def _charge_rows(count: int) -> None:
    charge(ratelimit.units_of_rows(count))
