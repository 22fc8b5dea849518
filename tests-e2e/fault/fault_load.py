"""The load: intents of all sorts, each with its own story, from many threads at once."""

import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fault_client import Client

Json = dict[str, Any]
QUICK = "QUICK"
"""A symbol that fills at once; its quote is set when the run begins."""
BID, ASK = "9.99", "10"
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
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def any(self, dice: random.Random) -> str:
        with self._lock:
            return dice.choice(self.ids)

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
    """Called for every intent that was asked for."""

    def run(self, more: Callable[[], bool]) -> None:
        stories = {
            self._simple: 42,
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

    # ---- stories

    def _simple(self) -> None:
        """Fills at once or rests for good, in every kind of order."""
        self._create(QUICK, self._spec(str(self.dice.randint(1, 5))))

    def _canceled(self) -> None:
        created = self._create(self.dice.choice(("SIM.OPEN", *TRICKLES)), self._spec(str(self.dice.randint(5, 30))))
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
        if self.dice.random() < 0.5:
            self._pause()
            self._cancel(created)

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
        if self.dice.random() < 0.6:
            self._cancel(created)

    def _batch(self) -> None:
        account = self.accounts.any(self.dice)
        first = self._create("SIM.OPEN", self._limit("5"), account)
        commands = [self._payload(account, QUICK, self._spec("1")) for _ in range(self.dice.randint(1, 4))]
        asked: list[tuple[str, Json]] = [("CREATE", payload) for payload in commands]
        if first and self.dice.random() < 0.5:
            asked.append(("REPLACE", {"ref_intent_id": first["intent_id"], "spec": self._limit("7")}))
        if first:
            asked.append(("CANCEL", {"ref_intent_id": first["intent_id"]}))
        for _ in commands:
            self.created()
        self.client.batch(account, asked, atomic=self.dice.random() < 0.5)

    def _same_key(self) -> None:
        """One idempotency key from several connections at once."""
        account = self.accounts.any(self.dice)
        payload = self._payload(account, self.dice.choice((QUICK, "SIM.TRICKLE20")), self._spec("2"))
        key = uuid4().hex
        self.created()
        twins = [self.client.twin() for _ in range(self.dice.randint(2, 4))]
        run_together([lambda twin=twin: twin.command(account, "CREATE", payload, key) for twin in twins])  # type: ignore[misc]
        self.client.repeated += sum(twin.repeated for twin in twins)

    def _rehearsed(self) -> None:
        account = self.accounts.any(self.dice)
        self.client.dry_run(account, "CREATE", self._payload(account, QUICK, self._spec("1")))

    def _read_back(self) -> None:
        """What was answered is there for the next request."""
        created = self._create(QUICK, self._spec("1"))
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

    def _create(self, symbol: str, spec: Json, account: str | None = None) -> Json | None:
        account = account or self.accounts.any(self.dice)
        self.created()
        return self.client.command(account, "CREATE", self._payload(account, symbol, spec))

    def _payload(self, account: str, symbol: str, spec: Json) -> Json:
        """An account mostly trades a symbol in one direction: else half of its orders would lack what they sell."""
        usual = random.Random(account + symbol).choice(("BUY", "SELL"))
        other = "SELL" if usual == "BUY" else "BUY"
        side = other if self.dice.random() < 0.08 else usual
        payload = {"symbol": symbol, "order_side": side, "spec": spec}
        return payload | ({"route_strategy": "DIRECT"} if self.dice.random() < 0.2 else {})

    def _replacing(self, created: Json | None, spec: Json, client: Client | None = None) -> Callable[[], object]:
        def replace() -> object:
            if created is None or next(iter(spec)) != next(iter(created["spec"])):
                return None
            payload = {"ref_intent_id": created["intent_id"], "spec": spec}
            return (client or self.client.twin()).command(created["account_id"], "REPLACE", payload)

        return replace

    def _cancel(self, created: Json | None) -> object:
        if created is None:
            return None
        payload = {"ref_intent_id": created["intent_id"]}
        return self.client.twin().command(created["account_id"], "CANCEL", payload)

    def _at_once(self, created: Json | None, work: list[Callable[[], object]]) -> None:
        if created is not None:
            run_together(work)

    def _spec(self, quantity: str) -> Json:
        """Any kind; prices around where both QUICK and the scripted symbols trade, so that some rest for good."""
        kind = self.dice.choice(("Market", "Market", "Limit", "Stop", "StopLimit"))
        prices = {
            "Market": {},
            "Limit": {"limit_price": self.dice.choice(("9.5", "10", "10.5", "100", "101"))},
            "Stop": {"stop_price": self.dice.choice(("9", "10", "11"))},
            "StopLimit": {
                "stop_price": self.dice.choice(("9", "10")),
                "limit_price": self.dice.choice(("9.9", "10.2")),
            },
        }[kind]
        force = {} if kind.startswith("Stop") else {"time_in_force": self.dice.choice(("DAY", "GTC", "DAY", "IOC"))}
        return {kind: {"quantity": quantity, **prices, **force}}

    def _limit(self, quantity: str) -> Json:
        """A limit that trades on the scripted symbols for BUY and SELL alike, mostly."""
        price = self.dice.choice(("100", "100", "99.99", "100.01", "98", "102"))
        return {"Limit": {"quantity": quantity, "limit_price": price, "time_in_force": "GTC"}}

    def _pause(self) -> None:
        time.sleep(self.dice.choice((0.0, 0.0, 0.02, 0.1, 0.3)))


def run_together(work: list[Callable[[], object]]) -> None:
    """All at the same moment; the first error is raised."""
    errors: list[BaseException] = []
    ready = threading.Barrier(len(work))

    def one(call: Callable[[], object]) -> None:
        try:
            ready.wait(30)
            call()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=one, args=(call,), daemon=True) for call in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Load:
    """Traders in threads, until the wanted number of intents was asked for or the time is over."""

    def __init__(
        self, client: Client, accounts: Accounts, *, wanted: int | None,
        seconds: float | None, traders: int, seed: int,
    ) -> None:  # fmt: skip
        self.wanted, self.seconds, self.began = wanted, seconds, time.monotonic()
        self.errors: list[BaseException] = []
        self._count = itertools.count(1)
        self.asked = 0
        self.traders = [self._trader(client, accounts, seed * 1000 + n) for n in range(traders)]
        self.threads = [threading.Thread(target=self._run, args=(trader,), daemon=True) for trader in self.traders]

    def _trader(self, client: Client, accounts: Accounts, seed: int) -> Trader:
        return Trader(client.twin(random.Random(seed)), accounts, random.Random(seed + 500), self._created)

    def start(self) -> None:
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()

    def _run(self, trader: Trader) -> None:
        try:
            trader.run(lambda: not self.errors and self.progress < 1)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            self.errors.append(error)

    def _created(self) -> None:
        self.asked = max(self.asked, next(self._count))

    @property
    def progress(self) -> float:
        """From 0 to 1: of the intents, or of the time."""
        if self.wanted is not None:
            return min(1.0, self.asked / self.wanted)
        return min(1.0, (time.monotonic() - self.began) / (self.seconds or 1.0))

    @property
    def repeated(self) -> int:
        return sum(trader.client.repeated for trader in self.traders)

    def running(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)
