"""Work spread over processes, and inside each over threads that keep a connection each busy."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from multiprocessing import get_context
from typing import Any


def slices(count: int, length: int) -> list[range]:
    return [range(start, min(start + length, count)) for start in range(0, count, length)]


def in_processes(
    function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], processes: int
) -> Iterator[Future[Any]]:
    """What each call gave, as soon as it did. Arguments are made one ahead, so that what they name is still there."""
    if processes == 1:
        yield from (_here(function, argument) for argument in arguments)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        running: set[Future[Any]] = set()
        for argument in arguments:
            running.add(pool.submit(function, *argument))
            if len(running) > processes:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from done
        yield from as_completed(running)


def _here(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(function(*arguments))
    except Exception as problem:  # noqa: BLE001 - as a pool does: reading the result raises it
        future.set_exception(problem)
    return future


def in_threads(work: Callable[[Iterator[int]], None], numbers: Iterable[int], count: int) -> None:
    """Each thread draws numbers until none is left. What breaks in one of them is raised when all have ended."""
    drawn, broken = iter(numbers), list[BaseException]()

    def run() -> None:
        try:
            work(drawn)
        except Exception as problem:  # noqa: BLE001 - raised below
            broken.append(problem)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if broken:
        raise broken[0]
