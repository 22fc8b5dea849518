"""An account's open orders, positions and latest events, drawn anew in place."""

import asyncio
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

import tip_client as tip
from tip import positions
from tip.moments import age_at, clock
from tip.order_text import ORDER_NUMBERS, ORDER_TITLES, event_line, order_row
from tip.output import Row, rich_table
from tip.plain import printable, short
from tip_client.models.holdings import Position

FRAMES_PER_SECOND = 4
TICK_S = 0.25
READ_AGAIN_S = 0.5
"""However much happens, lists are read no more often than this."""
AT_LEAST_EVERY_S = 15.0
"""Prices move without an event."""
LATEST = 8
MOST_ORDERS = 100


class Screen:
    """What is shown: it is drawn from here by rich's thread, and changed by the loop."""

    def __init__(self, account_id: str) -> None:
        self._account_id = account_id
        self.orders: list[tip.AsyncOrder] = []
        self.positions: list[Position] = []
        self.latest: deque[str] = deque(maxlen=LATEST)
        self.read_at: datetime | None = None
        self.is_connected = False

    def __rich__(self) -> Group:
        orders, held = map(order_row, self.orders), map(positions.position_row, self.positions)
        empty = "none" if self.read_at else "…"
        return Group(
            self._state(),
            *_section("OPEN ORDERS", ORDER_TITLES, orders, ORDER_NUMBERS, empty),
            *_section("POSITIONS", positions.TITLES, held, positions.NUMBERS, empty),
            *_events(self.latest),
        )

    def _state(self) -> Text:
        """`account 9202138f   ● connected   as of 12:00:01   Ctrl-C ends`."""
        state = ("● connected", "green") if self.is_connected else ("○ connecting", "yellow")
        is_old = not self.is_connected and self.read_at
        age = f"as of {clock(self.read_at)}" + (f", {age_at(self.read_at)} ago" if is_old else "")
        return Text.assemble(f"account {short(self._account_id)}   ", state, f"   {age}   Ctrl-C ends")


def _section(title: str, titles: Row, rows: Any, right: Row, empty: str) -> list[Any]:
    cells = [[printable(cell) for cell in row] for row in rows]
    return [Text(f"\n{title}", style="bold"), rich_table(titles, cells, right) if cells else Text(empty)]


def _events(latest: deque[str]) -> list[Text]:
    return [Text("\nLATEST", style="bold"), *(Text(line) for line in [*latest] or ["none"])]


def watch_account(settings: tip.Settings, account_id: str, symbol: str | None) -> None:
    """Until it is interrupted, or the account may not be read any more."""
    screen = Screen(account_id)
    console = Console(highlight=False, markup=False)
    with Live(screen, console=console, refresh_per_second=FRAMES_PER_SECOND, vertical_overflow="crop"):
        asyncio.run(_feed(replace(settings, account=account_id), screen, symbol))


async def _feed(settings: tip.Settings, screen: Screen, symbol: str | None) -> None:
    """Two tasks for ever; what ends one of them ends both."""
    async with tip.AsyncClient(settings=settings) as client, client.events() as events:
        happened = asyncio.Event()
        tasks = {
            asyncio.create_task(_follow(events, screen, symbol, happened)),
            asyncio.create_task(_refresh(client, events, screen, symbol, happened)),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()


async def _follow(events: tip.AsyncEventStream, screen: Screen, symbol: str | None, happened: asyncio.Event) -> None:
    async for event in events:
        happened.set()
        line = event_line(event)
        if line and symbol in (None, getattr(event, "symbol", None)):
            screen.latest.append(printable(line))


async def _refresh(
    client: tip.AsyncClient, events: tip.AsyncEventStream, screen: Screen, symbol: str | None, happened: asyncio.Event
) -> None:
    """Read the lists anew after every event, after every time without a connection, and now and then."""
    loop, read_at, was_connected = asyncio.get_running_loop(), 0.0, False
    while True:
        is_connected, age = events.is_connected, loop.time() - read_at
        is_due = happened.is_set() or (is_connected and not was_connected) or age > AT_LEAST_EVERY_S
        if (is_due or not read_at) and age > READ_AGAIN_S:
            happened.clear()
            read_at = loop.time()
            is_connected = await _read(client, screen, symbol) and events.is_connected
        was_connected = screen.is_connected = is_connected
        await asyncio.sleep(TICK_S)


async def _read(client: tip.AsyncClient, screen: Screen, symbol: str | None) -> bool:
    """Whether it was possible; a failure that does not pass by itself is raised."""
    try:
        found = client.orders(status="open", symbol=symbol, newest_first=True, page_size=MOST_ORDERS)
        orders = [order async for order in _first(found)]
        held = await client.positions()
    except tip.TipError as failure:
        if not failure.is_transient:
            raise
        return False
    screen.orders, screen.read_at = orders[::-1], datetime.now(UTC)
    screen.positions = [position for position in held if position.quantity and symbol in (None, position.symbol)]
    return True


async def _first(orders: Any) -> Any:
    """Those that fit on a screen."""
    count = 0
    async for order in orders:
        yield order
        count += 1
        if count == MOST_ORDERS:
            return
