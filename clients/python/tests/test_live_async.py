"""The asynchronous client does the same: a journey of each kind."""

import asyncio
from typing import Any

import pytest
from sdk_platform import Platform

import tip_client as tip


@pytest.mark.parametrize("transport", ["sse", "grpc"])
def test_orders_events_and_lists_work_in_an_event_loop(platform: Platform, own_account: str, transport: Any) -> None:
    async def journey() -> None:
        async with tip.AsyncClient(settings=platform.settings(account=own_account)) as client:
            orders = await asyncio.gather(*(client.buy("AAPL", quantity) for quantity in (1, 2, 3)))
            filled = [await order.wait("FILLED", timeout=60) for order in orders]
            assert {order.filled_quantity for order in filled} == {1, 2, 3}
            listed = [order.intent_id async for order in client.orders(newest_first=True, page_size=2)]
            assert set(listed) == {order.intent_id for order in orders}
            async with client.events(after=0, types=[tip.Fill], transport=transport) as events:
                quantities = {(await anext(events)).quantity for _ in range(3)}  # type: ignore[attr-defined]
            assert quantities == {1, 2, 3}
            with pytest.raises(tip.NotFound):
                await client.order("00000000-0000-4000-8000-000000000000")

    asyncio.run(journey())
