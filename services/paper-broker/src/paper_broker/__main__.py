"""`python -m paper_broker`."""

import asyncio
import logging
import sys

from paper_broker.app import serve
from paper_broker.config import BadConfig, Config


class Escaping(logging.Formatter):
    """Nothing that a terminal obeys gets into the log, and whatever follows the first line is indented."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n    ".join(
            "".join(character if character.isprintable() else ascii(character)[1:-1] for character in line)
            for line in super().format(record).split("\n")
        )


def main() -> int:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Escaping("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    try:
        asyncio.run(serve(Config.from_env()))
    except BadConfig as error:
        sys.stderr.write(f"paper-broker: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"paper-broker: cannot serve: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
