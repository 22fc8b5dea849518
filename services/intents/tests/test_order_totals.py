"""The totals that limits count are what the log and the intents say, whatever has happened to them."""

from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intents.model import TERMINAL, Spec, Status, Update
from tip_testing.commands import cancel, create, replace

from .broker_side import report
from .conftest import Desk

BUSY = (Status.PENDING_REPLACE, Status.PENDING_CANCEL)
UPDATES = (
    Update.SUBMITTED,
    Update.ACCEPTED,
    Update.REJECTED,
    Update.DENIED,
    Update.EXPIRED,
    Update.FAILED,
    Update.PARTIALLY_FILLED,
    Update.FILLED,
    Update.REPLACED,
    Update.REPLACE_REJECTED,
    Update.CANCELED,
    Update.CANCEL_REJECTED,
)


class Step(NamedTuple):
    """What happens next, to which of the intents there are, and how much of it."""

    what: str
    which: int
    quantity: int
    side: str
    symbol: str


steps = st.builds(
    Step,
    st.sampled_from(["create", "create", "replace", "cancel", *UPDATES]),
    st.integers(0, 9),
    st.integers(1, 20),
    st.sampled_from(["BUY", "SELL"]),
    st.sampled_from(["AAPL", "MSFT"]),
)


class History:
    """Runs steps on a desk. `replacing` is what a REPLACE on its way asks for."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.intents, self.replacing = desk, list[str](), dict[str, Decimal]()

    def run(self, step: Step, number: int) -> None:
        order = {"quantity": str(step.quantity), "limit_price": "99"}
        if step.what == "create" or not self.intents:
            self.intents.append(self.desk.created(create(step.symbol, side=step.side, Limit=order))["intent_id"])
            return
        intent_id = self.intents[step.which % len(self.intents)]
        if step.what == "replace":
            if self.desk.submit(replace(intent_id, Limit=order)).status_code == 201:
                self.replacing[intent_id] = Decimal(step.quantity)
        elif step.what == "cancel":
            self.desk.submit(cancel(intent_id))
        else:
            self._report(intent_id, Update(step.what), step.quantity, f"e{number}")

    def _report(self, intent_id: str, update: Update, quantity: int, execution_id: str) -> None:
        more: dict[str, Any] = {}
        if update in (Update.PARTIALLY_FILLED, Update.FILLED):
            more = {"execution_id": execution_id, "last_quantity": Decimal(quantity), "last_price": Decimal(5)}
        if update is Update.REPLACED and intent_id in self.replacing:
            more = {"spec": Spec("Limit", {"quantity": str(self.replacing[intent_id]), "limit_price": "99"})}
        report(self.desk, intent_id, update, **more)
        if self._status(intent_id) not in BUSY:
            self.replacing.pop(intent_id, None)

    def _status(self, intent_id: str) -> str:
        rows = {str(row["id"]): row["status"] for row in self.desk.rows("intent")}
        return str(rows[intent_id])


def recomputed(history: History) -> dict[str, tuple[int, int, Decimal, Decimal]]:
    """Orders, open orders and open quantities of each symbol and, under '', of the account: counted one by one."""
    orders = Counter(row["symbol"] for row in history.desk.rows("action") if row["type"] != "CANCEL")
    open_orders: Counter[str] = Counter()
    quantity: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in history.desk.rows("intent"):
        if row["status"] not in TERMINAL:
            most = max(row["quantity"], history.replacing.get(str(row["id"]), Decimal(0)))
            open_orders[row["symbol"]] += 1
            quantity[row["symbol"], row["order_side"]] += max(most - row["filled_quantity"], Decimal(0))
    found = {
        symbol: (orders[symbol], open_orders[symbol], quantity[symbol, "BUY"], quantity[symbol, "SELL"])
        for symbol in orders
    }
    whole = (orders.total(), open_orders.total(), Decimal(0), Decimal(0))
    return {**found, "": whole} if orders else found


def kept(desk: Desk) -> dict[str, tuple[int, int, Decimal, Decimal]]:
    return {
        row["symbol"]: (row["orders"], row["open_orders"], row["open_buy_quantity"], row["open_sell_quantity"])
        for row in desk.rows("order_total")
    }


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=st.lists(steps, min_size=1, max_size=14))
def test_totals_are_what_the_log_and_the_intents_say(
    new_desk: Callable[..., Desk], organization: Any, story: list[Step]
) -> None:
    desk = new_desk(organization=organization)
    history = History(desk)

    for number, step in enumerate(story):
        history.run(step, number)

    assert kept(desk) == recomputed(history)


def test_an_action_knows_how_many_orders_there_were_with_it(desk: Desk) -> None:
    first = desk.created(create("AAPL", Limit={"quantity": "1", "limit_price": "9"}))["intent_id"]
    desk.created(create("MSFT"))
    desk.created(replace(first, Limit={"quantity": "2", "limit_price": "9"}))
    desk.created(cancel(first))
    desk.created(create("MSFT"))

    rows = sorted(desk.rows("action"), key=lambda row: row["sequence"])

    assert [(row["account_orders"], row["symbol_orders"]) for row in rows] == [(1, 1), (2, 1), (3, 2), (3, 2), (4, 2)]
