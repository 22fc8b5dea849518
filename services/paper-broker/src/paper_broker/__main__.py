"""`python -m paper_broker`."""

import asyncio
import logging
import sys

from paper_broker.app import serve
from paper_broker.config import BadConfig, Config


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
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
