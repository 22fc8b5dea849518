"""Submitting orders, and reading what became of them."""

import dataclasses
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Any

from tip_client._async.order import AsyncBulkOperation, AsyncOrder
from tip_client._async.scope import AsyncScope
from tip_client.commands import cancel_command, create_command, record_of, replace_command
from tip_client.errors import NotFound
from tip_client.models.timeline import TimelineEntry
from tip_client.models.trading import (
    Action,
    BatchResult,
    BatchResults,
    BulkRecord,
    LogKeys,
    OrderRecord,
    RefusedCommand,
    Statistics,
    Verification,
)
from tip_client.orders import NewOrder, Number, OrderSpec, order_of
from tip_client.request import ask, command, get, given, listed
from tip_client.words import RouteStrategy, Side, Status, TimeInForce, TimeWindow


class AsyncTrading(AsyncScope):
    """Orders of one account."""

    async def submit(self, order: NewOrder, *, idempotency_key: str | None = None) -> AsyncOrder:
        """Submit an order. It is done once, however often it has to be sent."""
        action = await self._submit(create_command(order), idempotency_key)
        return AsyncOrder.of(self, record_of([action]))

    async def buy(
        self,
        symbol: str,
        quantity: Number | None = None,
        *,
        limit: Number | None = None,
        stop: Number | None = None,
        time_in_force: TimeInForce | str | None = None,
        client_id: str | None = None,
        tags: Iterable[str] = (),
        route_strategy: RouteStrategy | str | None = None,
        trail: Number | None = None,
        trail_percent: Number | None = None,
        notional: Number | None = None,
        extended_hours: bool = False,
        idempotency_key: str | None = None,
    ) -> AsyncOrder:
        """Buy: at the market, a quantity or for so much money (`notional`), or by the prices that are given."""
        prices: dict[str, Any] = {"limit": limit, "stop": stop, "time_in_force": time_in_force}
        prices |= {"trail": trail, "trail_percent": trail_percent, "notional": notional}
        about: dict[str, Any] = {"client_id": client_id, "tags": tags, "route_strategy": route_strategy}
        about |= {"extended_hours": extended_hours}
        order = order_of(symbol, Side.BUY, quantity, **prices, **about)
        return await self.submit(order, idempotency_key=idempotency_key)

    async def sell(
        self,
        symbol: str,
        quantity: Number | None = None,
        *,
        limit: Number | None = None,
        stop: Number | None = None,
        time_in_force: TimeInForce | str | None = None,
        client_id: str | None = None,
        tags: Iterable[str] = (),
        route_strategy: RouteStrategy | str | None = None,
        trail: Number | None = None,
        trail_percent: Number | None = None,
        notional: Number | None = None,
        extended_hours: bool = False,
        idempotency_key: str | None = None,
    ) -> AsyncOrder:
        """Sell: at the market, a quantity or for so much money (`notional`), or by the prices that are given."""
        prices: dict[str, Any] = {"limit": limit, "stop": stop, "time_in_force": time_in_force}
        prices |= {"trail": trail, "trail_percent": trail_percent, "notional": notional}
        about: dict[str, Any] = {"client_id": client_id, "tags": tags, "route_strategy": route_strategy}
        about |= {"extended_hours": extended_hours}
        order = order_of(symbol, Side.SELL, quantity, **prices, **about)
        return await self.submit(order, idempotency_key=idempotency_key)

    async def replace(self, intent_id: str, spec: OrderSpec, *, idempotency_key: str | None = None) -> Action:
        """Order `spec`, of the same kind, in place of the former; its quantity is the new total, fills included."""
        return await self._submit(replace_command(intent_id, spec), idempotency_key)

    async def cancel(self, intent_id: str, *, idempotency_key: str | None = None) -> Action:
        """Have an order canceled at the broker; it may be filled before."""
        return await self._submit(cancel_command(intent_id), idempotency_key)

    async def dry_run(self, order: NewOrder) -> Action:
        """What a submit would answer now; nothing is written."""
        body = {"command": create_command(order)}
        return await self._http.call(ask(self._path("/intents"), Action, body, dry_run=True))

    async def submit_batch(
        self, orders: Iterable[NewOrder], *, atomic: bool = False, idempotency_key: str | None = None
    ) -> tuple[BatchResult, ...]:
        """Submit up to 100 orders, each by itself, or all or none of them."""
        body = {"commands": [create_command(order) for order in orders], "atomic": atomic}
        request = command(self._path("/intents/batch"), BatchResults, body, idempotency_key)
        return (await self._http.call(request)).results

    async def cancel_all(
        self,
        *,
        symbol: str | None = None,
        side: Side | str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncBulkOperation:
        """Cancel all open orders, or those of a symbol or side."""
        body = given(symbol=symbol, order_side=side, reason=reason)
        return await self._bulk("/intents/cancel", body, idempotency_key)

    async def close_positions(
        self, *, symbol: str | None = None, reason: str | None = None, idempotency_key: str | None = None
    ) -> AsyncBulkOperation:
        """Close all positions, or that of a symbol, by market orders; open orders are canceled first."""
        return await self._bulk("/positions/close", given(symbol=symbol, reason=reason), idempotency_key)

    async def bulk_operation(self, operation_id: str) -> AsyncBulkOperation:
        """How far a bulk operation has come."""
        record = await self._http.call(get(self._path("/bulk-operations/{}", operation_id), BulkRecord))
        return AsyncBulkOperation.of(self, record)

    async def order(self, intent_id: str) -> AsyncOrder:
        """An order by the id of its intent."""
        actions = [action async for action in self.actions(intent_id)]
        return AsyncOrder.of(self, record_of(actions))

    async def order_by_client_id(self, client_id: str) -> AsyncOrder:
        """An order by the caller's own id; raises NotFound."""
        async for order in self.orders(client_id=client_id):
            return order
        raise NotFound(404, "not_found", "No order of the account has this client_id.")

    async def orders(
        self,
        *,
        status: Status | str | None = None,
        symbol: str | None = None,
        tag: str | None = None,
        client_id: str | None = None,
        group_id: str | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        newest_first: bool = False,
        page_size: int | None = None,
    ) -> AsyncIterator[AsyncOrder]:
        """The account's orders by time of creation; `status` is `open`, `closed` or one status."""
        about = given(status=status, symbol=symbol, tag=tag, client_id=client_id, group_id=group_id)
        query = {**about, **given(from_=from_, to=to)}
        order = "desc" if newest_first else "asc"
        async for record in self._http.pages(
            listed(self._path("/orders"), OrderRecord, page_size, order=order, **query)
        ):
            yield AsyncOrder.of(self, record)

    async def history(self, *, page_size: int | None = None) -> AsyncIterator[Action]:
        """Every action of the account, oldest first."""
        async for action in self._http.pages(listed(self._path("/intents"), Action, page_size)):
            yield action

    async def actions(self, intent_id: str, *, page_size: int | None = None) -> AsyncIterator[Action]:
        """Every action of an order, oldest first."""
        path = self._path("/intents/{}/actions", intent_id)
        async for action in self._http.pages(listed(path, Action, page_size)):
            yield action

    async def timeline(self, intent_id: str, *, page_size: int | None = None) -> AsyncIterator[TimelineEntry]:
        """The story of an order: its commands, the calls to the broker and what it reported, in order."""
        path = self._path("/intents/{}/timeline", intent_id)
        async for entry in self._http.pages(listed(path, TimelineEntry, page_size)):
            yield entry

    async def latest_action(self, intent_id: str, *, deadline: float | None = None) -> Action:
        """The last action of an order, with the order's state of now."""
        return await self._http.call(get(self._path("/intents/{}", intent_id), Action), deadline)

    async def refusals(
        self,
        *,
        from_: datetime | None = None,
        to: datetime | None = None,
        symbol: str | None = None,
        code: str | None = None,
        page_size: int | None = None,
    ) -> AsyncIterator[RefusedCommand]:
        """What controls refused, newest first."""
        query = given(from_=from_, to=to, symbol=symbol, code=code)
        async for refused in self._http.pages(listed(self._path("/refusals"), RefusedCommand, page_size, **query)):
            yield refused

    async def statistics(self, time_window: TimeWindow | str = TimeWindow.LAST_DAY) -> Statistics:
        """What was done in a window of time."""
        return await self._http.call(get(self._path("/intents/stats"), Statistics, time_window=time_window))

    async def verify(self) -> Verification:
        """Follow the chain of the account's log to its end, or to where it is broken."""
        cursor: str | None = None
        checked = 0
        while True:
            found = await self._http.call(get(self._path("/intents/verify"), Verification, next_cursor=cursor))
            checked += found.checked
            if found.next_cursor is None:
                return dataclasses.replace(found, checked=checked)
            cursor = found.next_cursor

    async def statement(self, *, from_: datetime | None = None, to: datetime | None = None) -> AsyncIterator[bytes]:
        """The account's log as a file that proves itself, in pieces to be written one after the other."""
        query = {name: str(value) for name, value in given(from_=from_, to=to).items()}
        url = self._http.settings.url.rstrip("/") + self._path("/statement")
        silence_s = self._http.settings.timeout
        async with self._http.streamed(url, query, {}, silence_s) as answer:
            async for chunk in answer.aiter_bytes():
                yield chunk

    async def log_keys(self) -> tuple[Mapping[str, Any], ...]:
        """The public keys that statements are verified with, as JWKs. Save them: a key that signed once stays valid."""
        return (await self._http.call(get("/.well-known/log-jwks.json", LogKeys))).keys

    async def _submit(self, sent: Mapping[str, Any], key: str | None) -> Action:
        return await self._http.call(command(self._path("/intents"), Action, {"command": sent}, key))

    async def _bulk(self, rest: str, body: Mapping[str, Any], key: str | None) -> AsyncBulkOperation:
        record = await self._http.call(command(self._path(rest), BulkRecord, body, key))
        return AsyncBulkOperation.of(self, record)
