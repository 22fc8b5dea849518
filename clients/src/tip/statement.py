"""`tip statement`"""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from tip.exits import WRONG_USAGE, Failure
from tip.moments import Moment
from tip.progress import bytes_progress
from tip.session import Session, with_session

ENDS = 2
"""Lines that are no entries: the first and the signed head."""


@click.command()
@click.option("--from", "since", type=Moment(), help="Entries since then: an age such as 30d, or a time.")
@click.option("--to", type=Moment(), help="Entries before then.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A new file, instead of standard output.")
@with_session
def command(session: Session, since: datetime | None, to: datetime | None, output: Path | None) -> None:
    """Download an account's log as a file that proves itself.

    `tip verify` checks it, without the platform. With --json it needs --output, and prints what was saved.
    """
    if session.out.as_json and output is None:
        raise click.UsageError("a statement is JSON lines already: --json goes with --output")
    pieces: Any = session.account_client.statement(from_=since, to=to)
    with closing(pieces):
        if output is None:
            print_pieces(session, pieces)
        else:
            show_saved(session, output, save(pieces, output))


def print_pieces(session: Session, pieces: Iterator[bytes]) -> None:
    """Progress is shown unless the file itself goes to the terminal."""
    with bytes_progress("statement", is_shown=not session.out.is_terminal) as advance:
        for piece in pieces:
            session.out.raw(piece)
            advance(len(piece))
            if session.out.is_closed:
                return


def save(pieces: Iterator[bytes], path: Path) -> tuple[int, int]:
    """Into a new file, whole or not at all; its size in bytes, and how many entries it has."""
    first = next(pieces, b"")  # what the platform refuses makes no file
    try:
        with path.open("xb") as file:
            return _written(file, path, first, pieces)
    except FileExistsError:
        raise Failure(f"{path} is there already", WRONG_USAGE, hint="remove it, or choose another name") from None
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}", WRONG_USAGE) from None


def _written(file: Any, path: Path, first: bytes, pieces: Iterator[bytes]) -> tuple[int, int]:
    size = lines = 0
    try:
        with bytes_progress(path.name) as advance:
            for piece in _all(first, pieces):
                file.write(piece)
                size, lines = size + len(piece), lines + piece.count(b"\n")
                advance(len(piece))
    except BaseException:
        path.unlink()
        raise
    return size, lines - ENDS


def _all(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from pieces


def show_saved(session: Session, path: Path, saved: tuple[int, int]) -> None:
    size, entries = saved
    keys = f"{session.settings.url.rstrip('/')}/.well-known/log-jwks.json"
    document = {"file": str(path), "bytes": size, "entries": entries}
    session.out.result(document, f"{entries} entries in {path}; check them: tip verify {path} --keys {keys}")
