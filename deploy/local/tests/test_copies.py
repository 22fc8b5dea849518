"""Processes that are copies of one that has imported what they import."""

import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tip_local.copies import CAN_COPY, Copy, Nursery
from tip_local.processes import wait_until
from tip_local.up import FRONT_DESCRIPTOR

pytestmark = pytest.mark.skipif(not CAN_COPY, reason="copies are made on Linux alone")


@pytest.fixture(scope="module")
def nursery():
    made = Nursery({**os.environ, "PYTHONPATH": str(Path(__file__).parent)})
    made.open()
    yield made
    made.close()


def copy(nursery, *arguments, **environment):
    return Copy(nursery, "copied", ("copied_program", *arguments), environment, signal.SIGKILL)


def shown(copied):
    with copied.stdout:
        return json.loads(copied.stdout.readline())


def test_a_copy_has_its_own_arguments_environment_and_session_and_ends_with_its_code(nursery):
    copied = copy(nursery, "7", COLOR="blue")

    found = shown(copied)
    assert (found["environment"], found["arguments"], found["leads"]) == ({"COLOR": "blue"}, ["7"], True)
    assert copied.wait(60) == 7 and copied.poll() == 7


def test_the_secrets_of_one_copy_are_not_in_the_memory_of_the_next(nursery):
    first = copy(nursery, "stay", SECRET=f"secret-of-first-{secrets.token_hex(8)}")
    assert shown(first)["secrets"] == ["first"]

    second = copy(nursery, "0", SECRET=f"secret-of-second-{secrets.token_hex(8)}")
    assert shown(second)["secrets"] == ["second"]
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait(60) == -signal.SIGKILL


def test_copies_know_together_which_tenants_are_there(nursery):
    found = [shown(copy(nursery, "0", TENANT=name))["is_alone"] for name in ("one", "one", "other")]

    assert found == [True, True, False]


def test_a_copy_has_open_files_of_the_supervisor_under_their_numbers(nursery):
    reads, writes = os.pipe()
    number = fcntl.fcntl(writes, fcntl.F_DUPFD_CLOEXEC, FRONT_DESCRIPTOR)
    environment = {"SHARED": str(number)}
    copied = Copy(nursery, "copied", ("copied_program", "0"), environment, signal.SIGKILL, (number,))
    shown(copied)

    assert copied.wait(60) == 0 and os.read(reads, 10) == b"shared"
    for descriptor in (reads, writes, number):
        os.close(descriptor)


def test_a_copy_that_gives_way_is_nice_and_no_other_is(nursery):
    nice = Copy(nursery, "copied", ("copied_program", "0"), {}, signal.SIGKILL, niceness=7)
    other = copy(nursery, "0")

    assert (found := shown(nice))["niceness"] == os.nice(0) + 7 and found["group"] in ([], ["nice", "7"])
    assert (found := shown(other))["niceness"] == os.nice(0) and found["group"] in ([], ["nice", "0"])
    assert nice.wait(60) == other.wait(60) == 0


def test_copies_end_with_the_nursery_and_the_next_copy_is_of_a_new_one(nursery):
    copied = copy(nursery, "stay")
    shown(copied)

    nursery._process.kill()

    assert copied.wait(60) == -signal.SIGKILL
    after = copy(nursery, "0")
    shown(after)
    assert after.wait(60) == 0


def test_grpc_is_not_forked():
    """It has threads of its own as soon as it is used: the stream gateway imports it in its copy."""
    code = "import sys; from tip_local import nursery as n; [n._load(name) for name in (*n.PROGRAMS, *n.IMPORTED)]"
    found = subprocess.run(
        [sys.executable, "-c", f"{code}; print('flask' in sys.modules, 'grpc' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert found.stdout.split() == ["True", "False"]


def test_a_nursery_that_is_closed_has_ended():
    made = Nursery(os.environ)
    made.open()
    pid = made._process.pid
    made.close()

    assert wait_until(lambda: not Path(f"/proc/{pid}").exists(), 5)
