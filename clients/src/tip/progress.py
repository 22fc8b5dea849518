"""Progress of what takes long, on standard error where that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def bytes_progress(what: str, *, is_shown: bool = True) -> Iterator[Advance]:
    """How many bytes have come, and how fast; nothing of it is left at the end."""
    if not (is_shown and sys.stderr.isatty()):
        yield lambda _bytes: None
        return
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda count: progress.advance(task, count)
