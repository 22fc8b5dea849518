"""The budget of an API key against a model of its own, whatever happens to the orders."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.model import Bounds
from intents.model import TERMINAL, Spec, Update
from tip_testing.commands import cancel, limit, replace
from tip_testing.identity_fixtures import IdentityFixtures

from .broker_side import report
from .conftest import Desk
from .serving import introduce
from .test_key_budgets import Spender
from .test_order_totals import UPDATES

MOST = Decimal(3000)


class Step(NamedTuple):
    what: str
    which: int
    quantity: int
    price: int


steps = st.builds(
    Step,
    st.sampled_from(["create", "create", "create", "replace", "replace", "cancel", *UPDATES]),
    st.integers(0, 9),
    st.integers(1, 20),
    st.sampled_from([90, 100]),
)


@dataclass
class Story:
    """Buys only, so that every order adds to the exposure. `taken` and `greatest` are of each intent."""

    spender: Spender
    taken: dict[str, Decimal] = field(default_factory=dict)
    greatest: dict[str, Decimal] = field(default_factory=dict)
    replacing: dict[str, Spec] = field(default_factory=dict)

    def run(self, step: Step, number: int) -> None:
        terms = {"quantity": str(step.quantity), "limit_price": str(step.price)}
        if step.what == "create" or not self.taken:
            self._create(terms)
            return
        intent_id = list(self.taken)[step.which % len(self.taken)]
        if step.what == "replace":
            self._replace(intent_id, terms)
        elif step.what == "cancel":
            self.spender.send(cancel(intent_id))
        else:
            self._report(intent_id, Update(step.what), step.quantity, f"e{number}")

    def _create(self, terms: dict[str, str]) -> None:
        cost = Decimal(terms["quantity"]) * Decimal(terms["limit_price"])
        answer = self.spender.send(limit("AAPL", terms["quantity"], terms["limit_price"]))
        assert (answer.status_code == 201) is (self.spent + cost <= MOST), (answer.text, self.spent, cost)
        if answer.status_code == 201:
            self.taken[answer.json["intent_id"]] = cost
            self.greatest[answer.json["intent_id"]] = Decimal(terms["quantity"])

    def _replace(self, intent_id: str, terms: dict[str, str]) -> None:
        quantity = Decimal(terms["quantity"])
        cost = max(Decimal(0), quantity * Decimal(terms["limit_price"]) - self.taken[intent_id])
        before = self.spent
        answer = self.spender.send(replace(intent_id, Limit=terms))
        refused = answer.status_code == 422 and answer.json["code"] == "control_rejected"
        if answer.status_code == 201 or refused:
            assert refused is (cost > 0 and before + cost > MOST), (answer.text, before, cost)
        if answer.status_code == 201:
            self.replacing[intent_id] = Spec("Limit", terms)
            if cost:
                self.taken[intent_id] += cost
                self.greatest[intent_id] = max(self.greatest[intent_id], quantity)

    def _report(self, intent_id: str, update: Update, quantity: int, execution_id: str) -> None:
        more: dict[str, Any] = {}
        if update in (Update.PARTIALLY_FILLED, Update.FILLED):
            more = {"execution_id": execution_id, "last_quantity": Decimal(quantity), "last_price": Decimal(5)}
        if update is Update.REPLACED and intent_id in self.replacing:
            more = {"spec": self.replacing.pop(intent_id)}
        report(self.spender.desk, intent_id, update, **more)

    @property
    def spent(self) -> Decimal:
        return sum((self._used(row) for row in self.spender.desk.rows("intent")), Decimal(0))

    def _used(self, row: Any) -> Decimal:
        if str(row["id"]) not in self.taken:
            return Decimal(0)
        taken, greatest = self.taken[str(row["id"])], self.greatest[str(row["id"])]
        if row["status"] not in TERMINAL:
            return taken
        part = taken * min(row["filled_quantity"], greatest) / greatest
        return part.quantize(Decimal("1e-9"), ROUND_DOWN)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps_taken=st.lists(steps, min_size=1, max_size=14))
def test_what_is_spent_is_what_the_orders_of_the_key_may_still_cost_or_have_filled(
    new_desk: Callable[..., Desk], identity: IdentityFixtures, organization: Any, steps_taken: list[Step]
) -> None:
    desk = new_desk(organization=organization)
    key = identity.key(organization.id, "paper", bounds=Bounds(max_notional_per_day=MOST))
    introduce(desk.app, key)
    story = Story(Spender(desk, key))

    for number, step in enumerate(steps_taken):
        story.run(step, number)
        assert story.spender.spent == story.spent
