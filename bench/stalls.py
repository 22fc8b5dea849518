"""When a processor stood still, nearly always because a virtual machine's host had taken it away.

A host does that for 5 to 100 ms at a time, several times in ten seconds, and does not always count it as stolen. What
was submitted then says nothing about the code. For each processor a process of the highest real-time priority naps
again and again: when it wakes late, its processor stood still. No process delays it; long work inside the kernel may,
ours as well as others', so what is left out is said beside each figure. Setting such a priority takes Linux, and root.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, NamedTuple

NAP_SECONDS = 0.005
LATE_SECONDS = 0.005
"""Who wakes so much later has met a stall."""


class Stall(NamedTuple):
    """By the wall clock."""

    began: float
    ended: float

    @property
    def caught_up(self) -> float:
        """What could not run meanwhile runs then; we assume for as long again."""
        return 2 * self.ended - self.began


class Stalls:
    """Those seen so far."""

    def __init__(self) -> None:
        self._seen: list[Stall] = []

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, stall: Stall) -> None:
        self._seen.append(stall)

    def overlap(self, began: float, ended: float) -> bool:
        """Whether one was under way, or caught up on, between these moments."""
        return any(stall.began < ended and stall.caught_up > began for stall in self._seen)


@contextmanager
def watched() -> Iterator[Stalls]:
    """The stalls of every processor while the block lasts."""
    stalls = Stalls()
    with ExitStack() as watching:
        for processor in range(os.cpu_count() or 1):
            watching.enter_context(_watching(processor, stalls))
        yield stalls


@contextmanager
def _watching(processor: int, stalls: Stalls) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.stalls", str(processor)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            sys.exit("bench: stalls can be seen on Linux only, by root")
        reader = threading.Thread(target=_read, args=(process.stdout, stalls))
        reader.start()
        try:
            yield
            if process.poll() is not None:
                sys.exit("bench: what watches for stalls has ended, so none of them would have been seen")
        finally:
            process.terminate()
            reader.join()


def _read(lines: IO[str], stalls: Stalls) -> None:
    for line in lines:
        began, ended = map(float, line.split())
        stalls.add(Stall(began, ended))


def watch(processor: int) -> None:
    """Print the moments between which the processor stood still, as long as there is somebody to read them."""
    reader = os.getppid()
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_max(os.SCHED_FIFO)))
    print("watching", flush=True)
    while os.getppid() == reader:
        began = time.monotonic()
        time.sleep(NAP_SECONDS)
        late = time.monotonic() - began - NAP_SECONDS
        if late > LATE_SECONDS:
            now = time.time()
            print(now - late, now, flush=True)


if __name__ == "__main__":
    watch(int(sys.argv[1]))
