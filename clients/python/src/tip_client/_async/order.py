"""An order, and a bulk operation, that can be waited for and changed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from time import monotonic
from typing import Any, Protocol, Self

from tip_client.errors import OrderEnded, Timeout
from tip_client.models.timeline import TimelineEntry
from tip_client.models.trading import Action, BulkRecord, OrderRecord
from tip_client.orders import Number, OrderSpec
from tip_client.waiting import next_delay, wanted_statuses
from tip_client.words import BulkStatus, CommandType, Status, TimeInForce


class AsyncOrderActions(Protocol):
    """What an order needs of its client."""

    async def latest_action(self, intent_id: str, *, deadline: float | None = None) -> Action: ...

    async def replace(self, intent_id: str, spec: OrderSpec, *, idempotency_key: str | None = None) -> Action: ...

    async def cancel(self, intent_id: str, *, idempotency_key: str | None = None) -> Action: ...

    def actions(self, intent_id: str) -> AsyncIterator[Action]: ...

    def timeline(self, intent_id: str) -> AsyncIterator[TimelineEntry]: ...

    async def bulk_operation(self, operation_id: str) -> "AsyncBulkOperation": ...


@dataclass(frozen=True)
class AsyncOrder(OrderRecord):
    """An order as it was when it was read; `refresh` reads it again."""

    _client: AsyncOrderActions = field(repr=False, compare=False)

    @classmethod
    def of(cls, client: AsyncOrderActions, record: OrderRecord) -> Self:
        values: dict[str, Any] = {column.name: getattr(record, column.name) for column in fields(OrderRecord)}
        return cls(**values, _client=client)

    @property
    def status(self) -> Status:
        return self.state.status

    @property
    def filled_quantity(self) -> Decimal:
        return self.state.filled_quantity

    @property
    def leaves_quantity(self) -> Decimal:
        """How much may still be filled."""
        return self.state.leaves_quantity

    @property
    def average_fill_price(self) -> Decimal | None:
        return self.state.average_fill_price

    @property
    def is_open(self) -> bool:
        return not self.status.is_terminal

    async def refresh(self, *, deadline: float | None = None) -> Self:
        """The order as it is now."""
        return self._after(await self._client.latest_action(self.intent_id, deadline=deadline))

    async def wait(self, *statuses: Status | str, timeout: float | None = None) -> Self:
        """The order once it has one of the statuses, or has ended if none is named.

        Raises Timeout after so many seconds, and the order goes on; OrderEnded if it can no longer come to that.
        """
        wanted, began, order = wanted_statuses(statuses), monotonic(), self
        while order.status not in wanted:
            if order.status.is_terminal:
                raise OrderEnded(f"The order ended as {order.status}: {order.state.reason_code}.", order)
            delay = next_delay(monotonic() - began, timeout)
            if delay is None:
                raise Timeout(f"The order is {order.status} after {timeout} s, and goes on.")
            await asyncio.sleep(delay)
            order = await order.refresh(deadline=timeout)
        return order

    async def replace(
        self,
        *,
        quantity: Number | None = None,
        limit: Number | None = None,
        stop: Number | None = None,
        time_in_force: TimeInForce | str | None = None,
        trail: Number | None = None,
        trail_percent: Number | None = None,
        idempotency_key: str | None = None,
    ) -> Self:
        """Order these in place of the former; `quantity` is the new total, fills included."""
        spec = self.spec.changed(
            quantity=quantity,
            limit=limit,
            stop=stop,
            time_in_force=time_in_force,
            trail=trail,
            trail_percent=trail_percent,
        )
        return self._after(await self._client.replace(self.intent_id, spec, idempotency_key=idempotency_key))

    async def cancel(self, *, idempotency_key: str | None = None) -> Self:
        """Have it canceled at the broker; it may be filled before."""
        return self._after(await self._client.cancel(self.intent_id, idempotency_key=idempotency_key))

    async def history(self) -> AsyncIterator[Action]:
        """Every action of the order, oldest first."""
        async for action in self._client.actions(self.intent_id):
            yield action

    async def timeline(self) -> AsyncIterator[TimelineEntry]:
        """Its story: commands, calls to the broker and what it reported, in order."""
        async for entry in self._client.timeline(self.intent_id):
            yield entry

    def _after(self, action: Action) -> Self:
        spec = self.spec if action.spec is None or action.command.type is CommandType.CANCEL else action.spec
        return replace(self, spec=spec, state=action.state, last_action=action)


@dataclass(frozen=True)
class AsyncBulkOperation(BulkRecord):
    """A cancel of many orders, or a close of positions, as it was when it was read."""

    _client: AsyncOrderActions = field(repr=False, compare=False)

    @classmethod
    def of(cls, client: AsyncOrderActions, record: BulkRecord) -> Self:
        values: dict[str, Any] = {column.name: getattr(record, column.name) for column in fields(BulkRecord)}
        return cls(**values, _client=client)

    async def refresh(self) -> "AsyncBulkOperation":
        """The operation as it is now."""
        return await self._client.bulk_operation(self.id)

    async def wait(self, *, timeout: float | None = None) -> "AsyncBulkOperation":
        """The operation once it is completed; raises Timeout after so many seconds, and it goes on."""
        began, operation = monotonic(), self.of(self._client, self)
        while operation.status is not BulkStatus.COMPLETED:
            delay = next_delay(monotonic() - began, timeout)
            if delay is None:
                raise Timeout(f"{operation.done} of {operation.total} are done after {timeout} s, and it goes on.")
            await asyncio.sleep(delay)
            operation = await operation.refresh()
        return operation
