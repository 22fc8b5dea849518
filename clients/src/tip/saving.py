"""A long answer that comes in pieces: printed, or saved as a new file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tip.exits import WRONG_USAGE, Failure
from tip.progress import bytes_progress
from tip.session import Session


def print_pieces(session: Session, pieces: Iterator[bytes], what: str) -> None:
    """Progress is shown unless the file itself goes to the terminal."""
    with bytes_progress(what, is_shown=not session.out.is_terminal) as advance:
        for piece in pieces:
            session.out.raw(piece)
            advance(len(piece))
            if session.out.is_closed:
                return


def save(pieces: Iterator[bytes], path: Path) -> tuple[int, int]:
    """Into a new file, whole or not at all; its size in bytes, and how many lines it has."""
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
    return size, lines


def _all(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from pieces
