"""Signals after a commit are coalesced, bounded, and sent by whichever process gave them."""

import multiprocessing
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.worker import after_commit
from chassis.worker.after_commit import AfterCommitSender, Send
from tip_testing.waiting import eventually

Message = dict[str, int]


class Receiver:
    """Takes one message at a time, when it is let; unreachable until it is opened."""

    def __init__(self) -> None:
        self.received: list[Message] = []
        self.tried = threading.Semaphore(0)
        self.is_open = True

    @contextmanager
    def connect(self) -> Iterator[Send]:
        if not self.is_open:
            self.tried.release()
            raise OSError("unreachable")
        yield self.take

    def take(self, message: Mapping[str, int]) -> None:
        self.tried.release()
        if not self.is_open:
            raise OSError("lost")
        self.received.append(dict(message))

    def sender(self, **more: Any) -> AfterCommitSender:
        times = {"every_s": 0.001, "retry_s": 0.001}
        return AfterCommitSender("test", self.connect, (OSError,), **times, failed_event="test_send_failed", **more)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread is not started, so that what is pending can be taken by the test."""
    monkeypatch.setattr(AfterCommitSender, "_start", lambda _self: None)


SIGNALS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9)))


@pytest.mark.usefixtures("held_back")
def test_of_each_key_the_highest_position_is_sent() -> None:
    @given(SIGNALS)
    def check(signals: list[tuple[str, int]]) -> None:
        sender = Receiver().sender()
        for key, position in signals:
            sender.signal(key, position)

        assert sender._take() == {key: max(at for name, at in signals if name == key) for key, _ in signals}

    check()


@pytest.mark.usefixtures("held_back")
def test_keys_beyond_the_limit_are_dropped_and_pending_ones_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after_commit, "MOST_PENDING", 2)
    sender = Receiver().sender()

    for key, position in (("a", 1), ("b", 1), ("c", 1), ("a", 2)):
        sender.signal(key, position)

    assert sender._take() == {"a": 2, "b": 1}


def test_an_unreachable_receiver_costs_the_signal_and_not_the_caller(receiver: Receiver) -> None:
    receiver.is_open = False
    sender = receiver.sender()
    sender.signal("lost", 1)
    assert receiver.tried.acquire(timeout=60)
    _until_taken(sender)

    receiver.is_open = True
    sender.signal("sent", 2)
    assert receiver.tried.acquire(timeout=60)

    assert receiver.received == [{"sent": 2}]


def test_a_signal_that_is_kept_is_sent_on_the_next_connection(receiver: Receiver) -> None:
    sender = receiver.sender(keeps=True)
    sender.signal("first", 1)
    eventually(lambda: receiver.received == [{"first": 1}])

    receiver.is_open = False
    sender.signal("kept", 2)
    for _ in range(3):
        assert receiver.tried.acquire(timeout=60)
    receiver.is_open = True

    eventually(lambda: receiver.received == [{"first": 1}, {"kept": 2}])


def _until_taken(sender: AfterCommitSender) -> None:
    deadline = time.monotonic() + 10
    while sender._pending:
        assert time.monotonic() < deadline, "a lost signal is still pending"
        time.sleep(0.001)


def _signal_and_report(sender: AfterCommitSender, receiver: Receiver, report: Connection) -> None:
    sender.signal("child", 1)
    report.send(receiver.tried.acquire(timeout=60) and receiver.received)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_sends_its_own_signals(receiver: Receiver) -> None:
    sender = receiver.sender()
    sender.signal("parent", 1)
    assert receiver.tried.acquire(timeout=60)
    ours, theirs = multiprocessing.Pipe()

    child = multiprocessing.get_context("fork").Process(target=_signal_and_report, args=(sender, receiver, theirs))
    child.start()
    assert ours.poll(20)
    child.join()

    assert ours.recv() == [{"parent": 1}, {"child": 1}]
