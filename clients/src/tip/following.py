"""What a command prints as it happens, until Ctrl-C or until nobody reads it."""

import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tip.order_text import event_line
from tip.output import Output
from tip.plain import json_of
from tip.session import Session

if TYPE_CHECKING:
    from tip_client import Event


@contextmanager
def until_interrupted(out: Output) -> Iterator[None]:
    """Ctrl-C is how following ends: it is done, not a failure. So is a reader that goes, as in `tip watch | head`."""
    is_over, turn = threading.Event(), threading.Lock()

    def end() -> None:
        with turn:
            if not is_over.is_set():
                out.close()
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    with suppress(KeyboardInterrupt), _once_nobody_reads(end):
        try:
            yield
        finally:
            with turn:
                is_over.set()


@contextmanager
def _once_nobody_reads(then: Callable[[], None]) -> Iterator[None]:
    """Also while nothing is written: otherwise it would end with the next event, and perhaps there is none.

    By a signal of its own: a shell starts what it runs in the background with SIGINT ignored.
    """
    try:
        reader = select.poll()
        reader.register(sys.stdout.fileno(), select.POLLHUP)  # of a pipe without a reader Linux says POLLERR, unasked
    except (AttributeError, OSError):  # there is no standard output, or it is not a file, or the system has no poll
        yield
        return

    def wait() -> None:
        found = reader.poll()
        if found and not found[0][1] & select.POLLNVAL:  # macOS says so of terminals: it cannot wait for them
            then()

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    threading.Thread(target=wait, name="reader", daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def show_event(session: Session, event: "Event") -> None:
    if session.out.as_json:
        session.out.json_line(event_document(event))
    elif line := event_line(event):
        session.out.line(line)


def event_document(event: "Event") -> dict[str, object]:
    """The event with the platform's name of its type."""
    from tip_client.events import KINDS

    name = next((name for name, kind in KINDS.items() if type(event) is kind), "UNKNOWN")
    return {"event": name, **json_of(event)}


def follow_orders(session: Session, after: int | None, symbol: str | None) -> None:
    import tip_client as tip

    if session.out.is_closed:
        return
    kinds = (tip.ActionAppended, tip.OrderUpdate, tip.Refusal)
    with until_interrupted(session.out), session.account_client.events(after=after, types=kinds) as events:
        for event in events:
            if symbol is None or getattr(event, "symbol", None) == symbol:
                show_event(session, event)
            if session.out.is_closed:
                return
