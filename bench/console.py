"""The console in Chromium, on a whole platform of its own: `make bench NAME=console`.

The first page, an event's way into the table, and ten thousand open orders, scrolled while new ones come.
BENCH_QUICK=1 is a trial with few orders and seconds.
"""

import os
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page

from bench.console_browser import Visit, bare_server, signed_in
from bench.console_load import Desk, Reader
from bench.harness import Ratio, pairs, percentile, report, tool
from bench.local_platform import platform
from tip_testing.chromium import chromium

QUICK = bool(os.environ.get("BENCH_QUICK"))
PAIRS = 2 if QUICK else 7
SECONDS = 5 if QUICK else 30
ORDERS = 500 if QUICK else 10_000
EVENTS_A_SECOND = 50
FIRST_PAGE_MS, FIRST_PAGE_KB, ROW_MS, FRAME_MS = 1000.0, 300.0, 150.0, 50.0

WATCH_ROWS = """() => {
  window.ages = [];
  // Rows come in a callback of the frame that shows them: the next task is after it.
  const painted = (recorded) => setTimeout(() => window.ages.push(Date.now() - recorded));
  new MutationObserver((changes) => {
    for (const change of changes) for (const row of change.addedNodes) {
      if (row.dataset?.intent) painted(Date.parse(row.querySelector("time").dateTime));
    }
  }).observe(document.querySelector("#orders tbody"), { childList: true });
}"""
WATCH_SHIFT = """() => {
  window.shift = 0;
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shift += entry.value; })
    .observe({ type: "layout-shift" });
}"""
SCROLL = """(seconds) => new Promise((done) => {
  const frames = [], tasks = [], pixels = 24;
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((task) => task.duration)));
  observer.observe({ type: "longtask" });
  const until = performance.now() + 1000 * seconds;
  let [before, step] = [performance.now(), pixels];
  requestAnimationFrame(function next(now) {
    frames.push(now - before);
    before = now;
    if (scrollY + innerHeight >= document.documentElement.scrollHeight - 1) step = -pixels;
    if (scrollY <= 0) step = pixels;
    scrollBy(0, step);
    if (now < until) return requestAnimationFrame(next);
    observer.disconnect();
    done({ frames: frames.slice(1), tasks });
  });
})"""


def p99(values: list[float]) -> float:
    return percentile(values, 0.99)


def against(name: str, bar: float, subject: float, unit: str) -> Ratio:
    """A figure beside the bar that it may not exceed."""
    return Ratio(name, unit, bar, subject, 0.0, goal=1.0, at_most=True)


class Console:
    """Somebody who has signed in, and who counts everything that went wrong."""

    def __init__(self, browser: Browser, desk: Desk, login: dict[str, str], bare: str) -> None:
        self.browser, self.desk, self.bare = browser, desk, bare
        self.cookies = signed_in(browser, desk.base, login)
        self.errors: list[str] = []

    @property
    def orders(self) -> str:
        return f"/console/accounts/{self.desk.account}/orders"

    def visit(self, base: str, path: str) -> tuple[float, float]:
        """Milliseconds until the page was loaded, and the kilobytes that came, with nothing kept from before."""
        visit = Visit(self.browser, base, self.cookies)
        took, size = visit.load(path), visit.bytes / 1000
        self.leave(visit)
        return took, size

    def opened(self, path: str) -> Visit:
        visit = Visit(self.browser, self.desk.base, self.cookies)
        visit.load(path)
        visit.page.wait_for_selector("#stream[data-state=live]")
        return visit

    def leave(self, visit: Visit) -> None:
        self.errors += visit.errors
        visit.close()


def first_page(console: Console, what: str) -> list[Ratio]:
    sizes: list[float] = []

    def subject() -> float:
        took, size = console.visit(console.desk.base, console.orders)
        sizes.append(size)
        return took

    subject()
    against_bare = pairs(
        f"{what}, until loaded / a bare page", lambda: console.visit(console.bare, "/")[0], subject, unit="ms",
        count=PAIRS,
    )  # fmt: skip
    return [
        against_bare,
        against(f"{what}, until loaded", FIRST_PAGE_MS, against_bare.subject, "ms"),
        against(f"{what}, transferred", FIRST_PAGE_KB, max(sizes), "KB"),
    ]


def live_rows(console: Console) -> tuple[list[Ratio], float]:
    """How old an event is when its row was painted, and when a bare client has it; the events a second there were."""
    visit, reader = console.opened(console.orders), Reader(console.desk)
    visit.page.evaluate(WATCH_ROWS)
    with reader.reading(), console.desk.trading(EVENTS_A_SECOND):
        visit.page.wait_for_timeout(1000 * SECONDS)
    visit.page.wait_for_timeout(1000)
    ages = [float(age) for age in visit.page.evaluate("window.ages")]
    console.leave(visit)
    ratios = [
        Ratio("event recorded to row painted, p50 / a bare client", "ms", median(reader.ages_ms), median(ages), 0.0),
        Ratio(
            "event recorded to row painted, p99 / a bare client",
            "ms",
            p99(reader.ages_ms),
            p99(ages),
            0.0,
        ),
        against("event recorded to row painted, p99", ROW_MS, p99(ages), "ms"),
    ]
    return ratios, reader.events / SECONDS


def scrolled(page: Page) -> dict[str, list[float]]:
    found: dict[str, list[float]] = page.evaluate(SCROLL, SECONDS)
    return found


def many_orders(console: Console) -> tuple[list[Ratio], dict[str, Any]]:
    """Scrolled, and left alone, while orders come."""
    console.desk.fill(ORDERS)
    ratios = first_page(console, f"{ORDERS:,} open orders")[1:2]
    plain = Visit(console.browser, console.bare)
    plain.load("/")
    bare = scrolled(plain.page)
    console.leave(plain)
    visit = console.opened(f"{console.orders}?status=open")
    with console.desk.trading(EVENTS_A_SECOND):
        visit.page.wait_for_timeout(1000 * SECONDS)  # until the table has as many rows as it shows
        found = scrolled(visit.page)
        visit.page.evaluate("scrollTo(0, 0)")
        visit.page.evaluate(WATCH_SHIFT)
        visit.page.wait_for_timeout(1000 * SECONDS)
    visit.page.wait_for_timeout(1000)
    shift, rows = visit.page.evaluate("[window.shift, document.querySelectorAll('#orders tbody tr').length]")
    console.leave(visit)
    return [
        *ratios,
        Ratio(
            "scrolled while live, frame p99 / a bare page",
            "ms",
            p99(bare["frames"]),
            p99(found["frames"]),
            0.0,
        ),
        against("scrolled while live, frame p99", FRAME_MS, p99(found["frames"]), "ms"),
    ], {"shift": shift, "rows": rows, "tasks": len(found["tasks"]), "longest": max(found["tasks"], default=0.0)}


def main() -> None:
    tool("chromium", "apt-get install chromium")
    with platform(BACKLOG_MAX_AGE_SECONDS="1000000") as running, bare_server() as bare, chromium() as browser:
        acme = running.local["organizations"]["acme"]
        desk = Desk(running.local["base_url"], acme["accounts"]["paper"], acme["api_keys"]["paper"])
        console = Console(browser, desk, running.local["login"], bare)
        ratios = first_page(console, "first page")
        rows, rate = live_rows(console)
        many, seen = many_orders(console)
        version = browser.version
    notes = (
        f"Chromium {version}, headless, on the same cores as the platform; nothing is cached. Where there is no other "
        f"reference, it is the bar. Rows at {rate:.0f} events a second. The table shows 50 orders of {ORDERS:,} and "
        f"grows to {seen['rows']} as new ones come; scrolled for {SECONDS} s at {EVENTS_A_SECOND} events a second it "
        f"had {seen['tasks']} tasks of more than 50 ms (longest {seen['longest']:.0f} ms). Layout shift while live: "
        f"{seen['shift']:.4f} (bar 0). Errors in the browser's console: {len(console.errors)} (bar 0)."
    )
    for error in console.errors:
        print("error:", error)
    if QUICK:
        print(ratios + rows + many, notes, sep="\n")
    else:
        versions = ("python", "playwright")
        report("Console", ratios + rows + many, versions=versions, command="make bench NAME=console", notes=notes)


if __name__ == "__main__":
    main()
