"""A broker that keeps account of the calls about one command: each is timed, logged, and kept for the timeline."""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol, TypeVar

from chassis import logs, tracing
from intents.execution.clock import elapsed
from intents.execution.model.calls import SENDS, BrokerCall, CallResult, result_of
from intents.execution.model.commands import LeasedCommand
from tip_brokers import Change, Check, ClientIds, NewOrder, Order

log = logs.get(__name__)

T = TypeVar("T")


class OrderEntry(Protocol):
    """What carrying out a command needs of a broker."""

    @property
    def client_ids(self) -> ClientIds: ...
    @property
    def call_seconds(self) -> float: ...
    def create(self, order: NewOrder, check: Check) -> Order: ...
    def replace(self, broker_order_id: str, change: Change, check: Check) -> Order: ...
    def cancel(self, broker_order_id: str, check: Check) -> None: ...
    def find(self, client_order_id: str, symbol: str) -> Order | None: ...
    def order(self, broker_order_id: str) -> Order | None: ...


class CallLog:
    """Of one attempt at a command, in order."""

    def __init__(self, command: LeasedCommand) -> None:
        self.command = command
        self.calls: list[BrokerCall] = []

    def of(self, broker: OrderEntry) -> OrderEntry:
        return _LoggedBroker(broker, self)

    def timed(self, verb: str, call: Callable[[], T]) -> T:
        began = elapsed()
        if verb in SENDS:
            self._line("send_started", verb)
        try:
            answer = call()
        except Exception as error:
            self._ended(verb, began, *result_of(error))
            raise
        is_absent = answer is None and verb not in SENDS
        self._ended(verb, began, CallResult.ABSENT if is_absent else CallResult.ANSWERED, None)
        return answer

    def _ended(self, verb: str, began: float, result: CallResult, reason: str | None) -> None:
        command = self.command
        started_at = command.now + timedelta(seconds=began - command.snapshot.at)
        milliseconds = round((elapsed() - began) * 1000, 2)
        self.calls.append(BrokerCall(command.action_id, verb, started_at, milliseconds, result, reason))
        event = "send_answered" if verb in SENDS else "query_answered"
        self._line(event, verb, result=str(result), ms=milliseconds, **({"reason": reason} if reason else {}))

    def _line(self, event: str, verb: str, **fields: object) -> None:
        command, trace = self.command, self.command.snapshot
        log.info(
            event,
            verb=verb,
            account_id=str(command.account_id),
            intent_id=str(command.intent_id),
            action_id=str(command.action_id),
            request_id=trace.request_id,
            trace_id=tracing.trace_id(trace.traceparent),
            **fields,
        )


class _LoggedBroker:
    def __init__(self, broker: OrderEntry, calls: CallLog) -> None:
        self._broker, self._timed = broker, calls.timed

    @property
    def client_ids(self) -> ClientIds:
        return self._broker.client_ids

    @property
    def call_seconds(self) -> float:
        return self._broker.call_seconds

    def create(self, order: NewOrder, check: Check) -> Order:
        return self._timed("create", lambda: self._broker.create(order, check))

    def replace(self, broker_order_id: str, change: Change, check: Check) -> Order:
        return self._timed("replace", lambda: self._broker.replace(broker_order_id, change, check))

    def cancel(self, broker_order_id: str, check: Check) -> None:
        return self._timed("cancel", lambda: self._broker.cancel(broker_order_id, check))

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        return self._timed("find", lambda: self._broker.find(client_order_id, symbol))

    def order(self, broker_order_id: str) -> Order | None:
        return self._timed("read", lambda: self._broker.order(broker_order_id))
