"""What a start does once is done in a process of its own."""

import os
import signal
import sys
import threading
import time

import pytest

from tip_local.apart import Failed, apart
from tip_local.errors import Fault
from tip_local.supervisor import StopRequested


def raising(error):
    def work(_given):
        raise error

    return work


def test_the_result_comes_back_and_what_was_imported_does_not():
    def work(given):
        import turtledemo

        return {"pid": os.getpid(), "given": given, "loaded": turtledemo.__name__}

    done = apart(work, "x")

    assert (done["given"], done["loaded"]) == ("x", "turtledemo")
    assert done["pid"] != os.getpid() and "turtledemo" not in sys.modules


def test_a_fault_stays_one_and_any_other_error_says_the_same():
    with pytest.raises(Fault, match="the disk is full"):
        apart(raising(Fault("the disk is full")), None)
    with pytest.raises(Failed, match=r"^broken\n"):
        apart(raising(ValueError("broken")), None)


def test_a_process_that_is_killed_has_failed():
    with pytest.raises(Failed):
        apart(lambda _given: os.kill(os.getpid(), 9), None)


def test_a_stop_that_another_thread_receives_is_noticed():
    def stop(_number, _frame):
        raise StopRequested

    def work(_given):
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)

    over = threading.Event()
    receiver = threading.Thread(target=over.wait)
    receiver.start()
    handler = signal.signal(signal.SIGTERM, stop)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    began = time.monotonic()
    try:
        with pytest.raises(StopRequested):
            apart(work, None)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGTERM, handler)
        over.set()
        receiver.join()

    assert time.monotonic() - began < 30
