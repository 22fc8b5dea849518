"""`tip statement`"""

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from tip.moments import Moment
from tip.saving import print_pieces, save
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
            print_pieces(session, pieces, "statement")
        else:
            show_saved(session, output, save(pieces, output))


def show_saved(session: Session, path: Path, saved: tuple[int, int]) -> None:
    size, entries = saved[0], saved[1] - ENDS
    keys = f"{session.settings.url.rstrip('/')}/.well-known/log-jwks.json"
    document = {"file": str(path), "bytes": size, "entries": entries}
    session.out.result(document, f"{entries} entries in {path}; check them: tip verify {path} --keys {keys}")
