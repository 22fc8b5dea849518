"""What one thread of the load does: intents of all sorts, each with its own story."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from fault_client import Client
from fault_markets import HIGH, LOW, MARKETS, QUICK, Market

Json = dict[str, Any]
BID, ASK = "9.99", "10"
LEFT_ALONE = 0.12
"""Share of the stories whose orders nobody cancels for long."""
LONGEST_LEFT = 10
"""Orders that a trader leaves alone before it cancels the oldest: a long run has no more of them open than a short."""
TRICKLES = ("SIM.TRICKLE5", "SIM.TRICKLE20", "SIM.TRICKLE60")
SCRIPTED = (
    "SIM.PARTIAL50",
    "SIM.REJECT",
    "SIM.REJECT_LATER",
    "SIM.TIMEOUT_AFTER_ACCEPT",
    "SIM.ERROR500_AFTER_ACCEPT",
    "SIM.DUPLICATE_EVENT",
    "SIM.LATE_FILL",
    "SIM.CANCEL_REJECT",
    "SIM.REPLACE_REJECT",
    "SIM.SLOW",
    "SIM.RATE_LIMIT",
    "SIM.REUSED_EXECUTION",
)


@dataclass
class Accounts:
    """Which accounts the clients may use at this moment; operators add and take away."""

    ids: list[str]
    brokers: dict[str, str] = field(default_factory=dict)
    """Of those that are not at the paper broker."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def any(self, dice: random.Random) -> str:
        with self._lock:
            return dice.choice(self.ids)

    def market(self, account_id: str) -> Market:
        return MARKETS[self.brokers.get(account_id, "paper")]

    def add(self, account_id: str) -> None:
        with self._lock:
            self.ids.append(account_id)

    def remove(self, account_id: str) -> None:
        with self._lock:
            self.ids.remove(account_id)


@dataclass
class Trader:
    """One thread of load."""

    client: Client
    accounts: Accounts
    dice: random.Random
    created: Callable[[], object]
    """Called for every intent that was accepted."""
    simple: int = 42
    _left: deque[Json] = field(default_factory=deque)

    def run(self, more: Callable[[], bool]) -> None:
        stories = {
            self._simple: self.simple,
            self._canceled: 12,
            self._chain: 16,
            self._filled_in_part: 7,
            self._scripted: 9,
            self._batch: 4,
            self._same_key: 4,
            self._rehearsed: 2,
            self._read_back: 4,
        }
        while more():
            self.dice.choices(list(stories), list(stories.values()))[0]()
            if len(self._left) > LONGEST_LEFT:
                self._cancel(self._left.popleft())

    # ---- stories

    def _simple(self) -> None:
        """Fills at once, in every kind of order; now and then it rests for good."""
        created = self._create(QUICK, str(self.dice.randint(1, 5)))
        if created and self.accounts.market(created["account_id"]).rests(created):
            self._left.append(created)

    def _canceled(self) -> None:
        created = self._create(self.dice.choice(("SIM.OPEN", *TRICKLES)), str(self.dice.randint(5, 30)))
        self._pause()
        if self.dice.random() < 0.3:
            self._at_once(created, [lambda: self._cancel(created), lambda: self._cancel(created)])
        else:
            self._cancel(created)

    def _chain(self) -> None:
        """Quantity up and down, or only the price, while it fills; sometimes several at once, or against a cancel."""
        quantity = self.dice.randint(10, 40)
        created = self._create(self.dice.choice((*TRICKLES, "SIM.OPEN")), self._limit(str(quantity)))
        for _ in range(self.dice.randint(1, 4)):
            self._pause()
            quantity += self.dice.choice((-6, -2, 0, 0, 3, 9))
            replace = self._replacing(created, self._limit(str(max(1, quantity))))
            if self.dice.random() < 0.25:
                other = self._replacing(created, self._limit(str(max(1, quantity + 4))))
                self._at_once(created, [replace, self.dice.choice((other, lambda: self._cancel(created)))])
            else:
                replace()
        self._pause()
        self._cancel_or_leave(created)

    def _filled_in_part(self) -> None:
        """Half is filled at once, so that every replacement has to count it."""
        created = self._create("SIM.PARTIAL50", self._limit(str(self.dice.choice((6, 8, 3)))))
        for quantity in self.dice.sample(("10", "12", "5", "20"), self.dice.randint(1, 3)):
            self._pause()
            self._replacing(created, self._limit(quantity))()
        self._pause()
        self._cancel(created)

    def _scripted(self) -> None:
        created = self._create(self.dice.choice(SCRIPTED), self._limit(str(self.dice.randint(1, 9))))
        self._pause()
        if self.dice.random() < 0.3:
            self._replacing(created, self._limit(str(self.dice.randint(1, 12))))()
            self._pause()
        self._cancel_or_leave(created)

    def _batch(self) -> None:
        account = self.accounts.any(self.dice)
        first = self._create("SIM.OPEN", self._limit("5"), account)
        commands = [self._payload(account, QUICK, "1") for _ in range(self.dice.randint(1, 4))]
        batch: list[tuple[str, Json]] = [("CREATE", payload) for payload in commands]
        market = self.accounts.market(account)
        if first and market.replaces and self.dice.random() < 0.5:
            spec = market.spec(self._limit("7"), "SIM.OPEN")
            batch.append(("REPLACE", {"ref_intent_id": first["intent_id"], "spec": spec}))
        if first:
            batch.append(("CANCEL", {"ref_intent_id": first["intent_id"]}))
        for action in self.client.batch(account, batch, atomic=self.dice.random() < 0.5):
            if action["command"]["type"] == "CREATE":
                self.created()

    def _same_key(self) -> None:
        """One idempotency key from several connections at once."""
        account = self.accounts.any(self.dice)
        payload = self._payload(account, self.dice.choice((QUICK, "SIM.TRICKLE20")), "2")
        key = uuid4().hex
        twins = [self.client.twin() for _ in range(self.dice.randint(2, 4))]
        actions: list[Json | None] = []
        run_at_once([partial(_keep, actions, twin, account, payload, key) for twin in twins])
        if any(actions):
            self.created()
        self.client.repeated += sum(twin.repeated for twin in twins)

    def _rehearsed(self) -> None:
        account = self.accounts.any(self.dice)
        self.client.dry_run(account, "CREATE", self._payload(account, QUICK, "1"))

    def _read_back(self) -> None:
        """What was answered is there for the next request."""
        created = self._create(QUICK, "1")
        if created:
            path = f"/v1/accounts/{created['account_id']}/intents/{created['intent_id']}"
            answer, sent = self.client.until_answered("GET", path)
            found = answer.body.get("id") == created["id"]
            self.client.journals.answers.write(
                {
                    "account": created["account_id"],
                    "type": "READ",
                    "sent": sent,
                    "status": answer.status,
                    "code": answer.code,
                    "intent": created["intent_id"],
                    "found": found,
                }
            )

    # ---- parts of them

    def _create(self, symbol: str, order: str | Json, account: str | None = None) -> Json | None:
        account = account or self.accounts.any(self.dice)
        action = self.client.command(account, "CREATE", self._payload(account, symbol, order))
        if action is not None:
            self.created()
        return action

    def _payload(self, account: str, symbol: str, order: str | Json) -> Json:
        """`order` is a spec, or the quantity of any kind of order.

        An account mostly trades a symbol in one direction: else half of its orders would lack what they sell.
        """
        usual, other = random.Random(account + symbol).sample(("BUY", "SELL"), 2)
        side = other if self.dice.random() < 0.08 else usual
        spec = self._spec(side, symbol, order) if isinstance(order, str) else order
        payload = {"symbol": symbol, "order_side": side, "spec": spec}
        direct = {"route_strategy": "DIRECT"} if self.dice.random() < 0.2 else {}
        return self.accounts.market(account).payload(payload | direct)

    def _replacing(self, created: Json | None, spec: Json, client: Client | None = None) -> Callable[[], object]:
        def replace() -> object:
            if created is None or next(iter(spec)) != next(iter(created["spec"])):
                return None
            market = self.accounts.market(created["account_id"])
            if not market.replaces:
                return None
            payload = {"ref_intent_id": created["intent_id"], "spec": market.spec(spec, "SIM.OPEN")}
            return (client or self.client.twin()).command(created["account_id"], "REPLACE", payload)

        return replace

    def _cancel(self, created: Json | None) -> object:
        if created is None:
            return None
        payload = {"ref_intent_id": created["intent_id"]}
        return self.client.twin().command(created["account_id"], "CANCEL", payload)

    def _cancel_or_leave(self, created: Json | None) -> None:
        if created and self.dice.random() < LEFT_ALONE:
            self._left.append(created)
        else:
            self._cancel(created)

    def _at_once(self, created: Json | None, work: list[Callable[[], object]]) -> None:
        if created is not None:
            run_at_once(work)

    def _spec(self, side: str, symbol: str, quantity: str) -> Json:
        """Any kind of order, mostly at a price at which it trades at once."""
        low, high = (LOW, HIGH) if symbol == QUICK else ("99", "101")
        trades, rests = (high, low) if side == "BUY" else (low, high)
        rest = self.dice.random() < 0.03
        limit, stop = (rests, trades) if rest else (trades, rests)  # a stop is the other way round
        kind = self.dice.choice(("Market", "Market", "Limit", "Stop", "StopLimit"))
        kind = "TrailingStop" if rest and kind == "Market" else kind  # behind a price that stands: it rests
        prices = {
            "Market": {},
            "Limit": {"limit_price": limit},
            "Stop": {"stop_price": stop},
            "StopLimit": {"stop_price": stop, "limit_price": limit},
            "TrailingStop": {"trail_percent": "5"},
        }[kind]
        force = {} if "Stop" in kind else {"time_in_force": self.dice.choice(("DAY", "GTC", "IOC", "FOK"))}
        return {kind: {"quantity": quantity, **prices, **force}}

    def _limit(self, quantity: str) -> Json:
        """A limit that trades on the scripted symbols for BUY and SELL alike, mostly."""
        price = self.dice.choice(("100", "100", "99.99", "100.01", "98", "102"))
        return {"Limit": {"quantity": quantity, "limit_price": price, "time_in_force": "GTC"}}

    def _pause(self) -> None:
        time.sleep(self.dice.choice((0.0, 0.0, 0.02, 0.1, 0.3)))


def _keep(actions: list[Json | None], client: Client, account: str, payload: Json, key: str) -> None:
    actions.append(client.command(account, "CREATE", payload, key))


def run_at_once(work: list[Callable[[], object]]) -> None:
    """All at the same moment; the first error is raised."""
    errors: list[BaseException] = []
    ready = threading.Barrier(len(work))

    def run(call: Callable[[], object]) -> None:
        try:
            ready.wait(30)
            call()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
