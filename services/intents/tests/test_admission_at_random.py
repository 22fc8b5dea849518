"""Whatever an account is, holds, has done and may do: the service decides an order as the contract says.

Three opinions on every case: a dry run of intents, a preview of controls, and the slow model of `admission_model`. A
few hundred cases by default; `ADMISSION_CASES=10000 pytest …` runs that many.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controls.app import create_app as create_controls
from intents.model import Update
from tip_local.identity_seed import add_account
from tip_testing.commands import batch, create
from tip_testing.commands import replace as replacement
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .admission_model import Case, Holding, Order, PastOrder, clock, refusals
from .broker_side import report
from .conftest import Desk
from .serving import introduce

CASES = int(os.environ.get("ADMISSION_CASES", "200"))
SYMBOLS = ("AAPL", "MSFT", "TSLA")
ZONES = ("UTC", "America/New_York", "Asia/Tokyo", "Europe/Berlin")
AGES = (5, 40, 75, 4_000, 80_000, 90_000)
"""In seconds, none near the edge of a minute or a day: the case is decided some moments after it is made."""
PRICES = ("99", "100", "100.5", "101", "150")


def unset(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


def decimals(most: int) -> st.SearchStrategy[Decimal]:
    return st.integers(1, most).map(Decimal)


_BOTH = {
    "max_quantity": decimals(20),
    "max_notional": decimals(2_000),
    "price_collar_bps": st.sampled_from([50, 100, 1_000]),
    "max_orders_per_minute": st.integers(1, 4),
    "max_orders_per_day": st.integers(1, 6),
    "max_position_quantity": decimals(40),
    "max_position_notional": decimals(4_000),
    "max_open_orders": st.integers(1, 5),
    "allow_short": st.booleans(),
}
_ACCOUNT = {
    **_BOTH,
    "max_gross_exposure": decimals(8_000),
    "max_daily_loss": decimals(200),
    "allowed_symbols": st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True),
    "denied_symbols": st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True),
}


def limits(of: dict[str, Any]) -> st.SearchStrategy[dict[str, Any] | None]:
    some = st.fixed_dictionaries({}, optional=of).filter(bool)
    return unset(some)


@st.composite
def past_orders(draw: st.DrawFn) -> tuple[PastOrder, ...]:
    """The oldest first, as a log has them."""
    ages = sorted(draw(st.lists(st.sampled_from(AGES), max_size=6)), reverse=True)
    found = []
    for age in ages:
        quantity = draw(st.integers(1, 12))
        filled = draw(st.integers(0, quantity))
        ended = filled == quantity or draw(st.booleans())
        symbol, side = draw(st.sampled_from(SYMBOLS)), draw(st.sampled_from(["BUY", "SELL"]))
        found.append(PastOrder(symbol, side, quantity, filled, ended, age))
    return tuple(found)


holdings = st.dictionaries(
    st.sampled_from(SYMBOLS),
    st.builds(Holding, st.integers(-15, 15), unset(st.sampled_from(PRICES)), st.sampled_from([0, 30, 70, 5_000])),
)
trails = st.tuples(st.sampled_from(["trail_amount", "trail_percent"]), st.sampled_from(["0.5", "1", "1.5", "10", "60"]))
notionals = st.sampled_from(["0.01", "99", "900", "1000", "1999.99", "2000"])
symbols, sides, quantities = st.sampled_from(SYMBOLS), st.sampled_from(["BUY", "SELL"]), st.integers(1, 25)
prices = unset(st.sampled_from(PRICES))
orders = st.one_of(
    st.builds(Order, symbols, sides, quantities, prices, prices),
    st.builds(Order, symbols, sides, quantities, trail=trails),
    st.builds(Order, symbols, sides, st.just(0), notional=notionals),
)
states = unset(st.sampled_from(["ACTIVE", "ACTIVE", "REDUCING", "HALTED"]))
windows = st.sampled_from([None, None, (-2, 2), (1, 5), (-5, -1), (2, -2), (-3, 8)])
creates = st.builds(
    Case,
    order=orders,
    time_zone=st.sampled_from(ZONES),
    disabled=st.sampled_from([False] * 7 + [True]),
    organization_state=st.sampled_from([None] * 6 + ["REDUCING", "HALTED"]),
    account_state=states,
    manually_disabled=st.sampled_from([None, None, False, False, True]),
    window=windows,
    account_limits=limits(_ACCOUNT),
    symbol_limits=limits(_BOTH),
    history=past_orders(),
    holdings=holdings,
    equity=unset(st.tuples(st.integers(500, 1_000), st.integers(400, 1_100))),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A new order, or the replacement of an open one."""
    case = draw(creates)
    open_orders = [place for place, past in enumerate(case.history) if not past.ended]
    if not open_orders or draw(st.booleans()):
        return case
    place = draw(st.sampled_from(open_orders))
    past = case.history[place]
    order = Order(past.symbol, past.side, past.filled + draw(st.integers(1, 20)))
    return replace(case, order=order, replaces=place)


class Stage:
    """One organization for all cases, and an account of its own for each."""

    def __init__(self, desk: Desk, controls: FlaskClient, organization: Organization) -> None:
        self.desk, self.controls, self.organization = desk, controls, organization

    def prepare(self, case: Case, now: datetime) -> tuple[Desk, list[str]]:
        """Write the case down: the history by submits and reports, the rest as its owners would. The intents of it."""
        admin, organization = self.desk.admin, self.organization
        account_id = add_account(admin, organization.id, "paper", time_zone=case.time_zone)
        desk = Desk(self.desk.app, self.desk.platform, organization, account_id, admin)
        desk.execute("DELETE FROM controls.organization_switch WHERE organization_id = :of", of=organization.id)
        intents = self._trade(desk, case) if case.history else []
        self._hold(desk, case)
        self._control(desk, case, now)
        return desk, intents

    def _trade(self, desk: Desk, case: Case) -> list[str]:
        sent = [create(past.symbol, str(past.quantity), past.side) for past in case.history]
        answer = desk.client.post(f"{desk.path}/batch", json=batch(*sent), headers=desk.headers)
        intents = [result["action"]["intent_id"] for result in answer.json["results"]]
        for past, intent_id in zip(case.history, intents, strict=True):
            settle(desk, past, UUID(intent_id))
        return intents

    def _hold(self, desk: Desk, case: Case) -> None:
        for symbol, holding in case.holdings.items():
            desk.execute(
                "INSERT INTO intents.position (account_id, symbol, quantity, last_price, updated_at, "
                "price_at, price_source) VALUES (:account_id, :symbol, :quantity, :price, now(), "
                "now() - make_interval(secs => :age), 'fill')",
                symbol=symbol,
                quantity=holding.quantity,
                price=holding.price,
                age=holding.price_age,
            )
        if case.equity:
            desk.execute(
                "INSERT INTO intents.balance (account_id, currency, cash, equity, buying_power, updated_at) "
                "VALUES (:account_id, 'USD', 0, :equity, 0, now())",
                equity=case.equity[1],
            )
            desk.execute(
                "INSERT INTO intents.day_equity (account_id, organization_id, day, equity, balance_at, ends_at) "
                "VALUES (:account_id, :organization_id, CAST(now() AT TIME ZONE :zone AS date), :equity, now(), "
                "now() + interval '1 day')",
                organization_id=desk.organization.id,
                zone=case.time_zone,
                equity=case.equity[0],
            )

    def _control(self, desk: Desk, case: Case, now: datetime) -> None:
        desk.execute("UPDATE accounts.account SET disabled = :disabled WHERE id = :account_id", disabled=case.disabled)
        if case.organization_state:
            desk.execute(
                "INSERT INTO controls.organization_switch (organization_id, trading_state) VALUES (:of, :state)",
                of=desk.organization.id,
                state=case.organization_state,
            )
        symbol = {"symbol": case.order.symbol}
        if case.account_state:
            insert(desk, "account_switch", {"trading_state": case.account_state})
        if case.manually_disabled is not None:
            insert(desk, "symbol_manual", {**symbol, "manually_disabled": case.manually_disabled})
        if case.window:
            start, end = (clock(case, now, hours) for hours in case.window)
            insert(desk, "symbol_time", {**symbol, "trading_start": start, "trading_end": end})
        if case.account_limits:
            insert(desk, "account_limits", case.account_limits)
        if case.symbol_limits:
            insert(desk, "symbol_limits", {**symbol, **case.symbol_limits})

    def dry_run(self, desk: Desk, body: Any) -> list[tuple[str, str]]:
        answer = desk.submit(body, query="?dry_run=true")
        assert answer.status_code in (200, 422), answer.get_data(as_text=True)
        return sorted((reason["control"], reason["code"]) for reason in answer.json.get("reasons", ()))

    def preview(self, desk: Desk, body: Any) -> list[tuple[str, str]]:
        credential = {"Authorization": f"Bearer {desk.organization.tokens['admin']}"}
        path = f"/v1/controls/accounts/{desk.account_id}/preview"
        answer = self.controls.post(path, json=body, headers=credential)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return sorted((reason["control"], reason["code"]) for reason in answer.json["reasons"])


def insert(desk: Desk, table: str, values: dict[str, Any]) -> None:
    columns, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    desk.execute(
        f"INSERT INTO controls.{table} (account_id, organization_id, {columns}) "
        f"VALUES (:account_id, :organization_id, {marks})",
        organization_id=desk.organization.id,
        **values,
    )


def settle(desk: Desk, past: PastOrder, intent_id: UUID) -> None:
    """What the broker and the time have made of the order since."""
    desk.execute("SET session_replication_role = replica")  # the log is append-only for everybody else
    desk.execute(
        "UPDATE intents.action SET created_at = now() - make_interval(secs => :age) "
        "WHERE account_id = :account_id AND intent_id = :id",
        id=intent_id,
        age=past.age,
    )
    desk.execute("SET session_replication_role = DEFAULT")
    report(desk, intent_id, Update.ACCEPTED)
    if past.filled:
        update = Update.FILLED if past.filled == past.quantity else Update.PARTIALLY_FILLED
        fill = {"last_quantity": Decimal(past.filled), "last_price": Decimal(1)}
        report(desk, intent_id, update, execution_id=str(uuid4()), **fill)
    if past.ended and past.filled < past.quantity:
        report(desk, intent_id, Update.CANCELED)


def body_of(order: Order) -> Any:
    spec: dict[str, str] = {"quantity": str(order.quantity)}
    spec |= {"limit_price": order.limit} if order.limit else {}
    spec |= {"stop_price": order.stop} if order.stop else {}
    if order.notional:
        return create(order.symbol, side=order.side, Market={"notional": order.notional})
    if order.trail:
        return create(order.symbol, side=order.side, TrailingStop=spec | dict([order.trail]))
    kind = {(False, False): "Market", (True, False): "Limit", (False, True): "Stop", (True, True): "StopLimit"}
    return create(order.symbol, side=order.side, **{kind[bool(order.limit), bool(order.stop)]: spec})


@pytest.fixture(scope="module")
def stage(app: Any, platform: Platform, identity: IdentityFixtures, admin: Any) -> Iterator[Stage]:
    organization = identity.organization(entitlements=("controls_premium", "trading_live"))
    introduce(app, organization.api_keys["paper"])
    controls = create_controls(
        platform.web_environment(
            "controls", RATE_LIMIT_PER_MINUTE="10000000", LOG_LEVEL="warning", QUOTE_WAIT_SECONDS="0.05"
        )
    )
    desk = Desk(app, platform, organization, uuid4(), admin)
    yield Stage(desk, controls.test_client(), organization)
    controls.extensions["deps"].engine.dispose()


@pytest.mark.timeout(120 + 2 * CASES)
@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(case=cases())
def test_dry_run_preview_and_contract_agree(stage: Stage, case: Case) -> None:
    now = datetime.now(UTC)
    desk, intents = stage.prepare(case, now)
    create_body = body_of(case.order)
    sent, previewed = create_body, create_body
    if case.replaces is not None:
        sent = replacement(intents[case.replaces], Market={"quantity": str(case.order.quantity)})
        payload = {**create_body["command"]["payload"], "ref_intent_id": intents[case.replaces]}
        previewed = {"command": {"type": "REPLACE", "payload": payload}}

    expected = refusals(case, now)

    assert stage.dry_run(desk, sent) == expected
    assert stage.preview(desk, previewed) == expected
