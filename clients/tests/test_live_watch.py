"""`tip watch` on a terminal and in a pipe, on a whole platform."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from cutting_proxy import CuttingProxy
from sdk_platform import Platform
from tip_caller import TipCaller

from tip_testing.terminal import CTRL_C, terminal
from tip_testing.waiting import eventually

WAIT = ("--wait", "--timeout", "90")
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"

Piped = Callable[..., AbstractContextManager[subprocess.Popen[str]]]


@pytest.fixture
def piped(tip: TipCaller) -> Piped:
    """`tip` in a process of its own, in a pipe."""
    environment = {name: value for name, value in tip.environment.items() if value is not None}

    @contextmanager
    def start(*words: str, before: str = "") -> Iterator[subprocess.Popen[str]]:
        command = ["sh", "-c", f'{before} exec "$@"', "sh", sys.executable, "-m", "tip.cli", *words]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise

    return start


def test_orders_and_positions_are_drawn_as_they_change(tip: TipCaller, symbol: str) -> None:
    tip.done("buy", "SIM.OPEN", "7", "--limit", "1")

    with terminal("watch", environment=tip.environment) as screen:
        screen.see("● connected", "OPEN ORDERS", "SIM.OPEN", "POSITIONS")
        before = len(screen.shown)
        tip.done("buy", symbol, "2", *WAIT)
        screen.see(symbol, "FILLED", after=before)
        before = len(screen.shown)
        tip.done("cancel", "--all", *WAIT)
        screen.see("CANCELED", after=before)
        screen.type(CTRL_C)

        assert screen.end() == 0
        assert screen.shown.rindex(SHOW_CURSOR) > screen.shown.rindex(HIDE_CURSOR)
        assert "Traceback" not in screen.shown


def test_a_lost_connection_is_made_anew_and_seen_while_it_is_lost(
    tip: TipCaller, whole_platform: Platform, symbol: str
) -> None:
    local = whole_platform.local
    key = {"TIP_PROFILE": None, "TIP_KEY": local["organizations"]["acme"]["api_keys"]["paper"]}
    with CuttingProxy(local["events_url"]) as proxy:
        address = {"TIP_URL": local["base_url"], "TIP_EVENTS_URL": f"http://{proxy.address}"}
        with terminal("watch", environment=tip.environment | key | address) as screen:
            screen.see("● connected")
            assert proxy.cut()
            tip.done("buy", symbol, "1", *WAIT)
            screen.see(symbol, "FILLED")
            proxy.close()
            screen.see("○ connecting", " ago   Ctrl-C")
            screen.type(CTRL_C)

            assert screen.end() == 0


def test_a_pipe_gets_an_event_a_line_and_goes_on_after_a_position(piped: Piped, tip: TipCaller, symbol: str) -> None:
    made = tip.json("buy", symbol, "1", *WAIT)["intent_id"]

    with piped("watch", "--after", "0") as watching:
        assert watching.stdout is not None
        seen = [json.loads(next(watching.stdout))]
        while seen[-1]["event"] != "BROKER_TRADE":
            seen.append(json.loads(next(watching.stdout)))
        watching.send_signal(signal.SIGINT)
    assert watching.returncode == 0
    [action] = [event for event in seen if event["event"] == "INTENT_ACTION"]
    following = [event for event in seen if event.get("symbol") == symbol][1]
    assert action["intent_id"] == made

    after = "{sequence}@{epoch}".format(**action["position"])
    with piped("watch", "--json", "--symbol", symbol.lower(), "--after", after) as watching:
        assert watching.stdout is not None
        assert json.loads(next(watching.stdout)) == following
        watching.send_signal(signal.SIGINT)


IN_THE_BACKGROUND = "trap '' INT;"  # as shells start what they run there


@pytest.mark.parametrize("before", ["", IN_THE_BACKGROUND], ids=["in the foreground", "in the background"])
@pytest.mark.parametrize("words", ["watch --after 0", "watch --json --after 0", "orders --follow"])
def test_what_is_followed_ends_with_its_reader_also_when_nothing_happens(
    piped: Piped, words: str, before: str, tip: TipCaller, symbol: str
) -> None:
    tip.done("buy", symbol, "1", *WAIT)

    with piped(*words.split(), before=before) as following:
        assert following.stdout is not None
        next(following.stdout)
        time.sleep(3)  # all there is was written
        following.stdout.close()
        eventually(lambda: following.poll() is not None)

    assert following.returncode == 0


def test_a_watch_ends_when_nobody_reads(piped: Piped, tip: TipCaller, symbol: str) -> None:
    tip.done("buy", symbol, "1", *WAIT)

    with piped("watch", "--after", "0") as watching:
        assert watching.stdout is not None
        next(watching.stdout)
        watching.stdout.close()
        eventually(lambda: tip.done("buy", symbol, "1") and watching.poll() is not None)

    assert watching.returncode == 0


def test_who_may_not_watch_is_exit_code_1_with_a_restored_terminal(tip: TipCaller, whole_platform: Platform) -> None:
    wrong = {"TIP_PROFILE": None, "TIP_URL": whole_platform.local["base_url"], "TIP_KEY": "tip_paper_none"}

    with terminal("watch", environment=tip.environment | wrong) as screen:
        assert screen.end() == 1
        assert "unauthenticated" in screen.shown and screen.shown.rindex(SHOW_CURSOR) > screen.shown.rindex(HIDE_CURSOR)
