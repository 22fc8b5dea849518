"""What a start does once is done in a process of its own."""

import os
import sys

import pytest

from tip_local.apart import Failed, apart
from tip_local.errors import Fault


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
