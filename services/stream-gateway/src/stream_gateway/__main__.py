"""`python -m stream_gateway`."""

import logging
import os
import sys
from functools import partial

from chassis import process
from chassis.config import stop_on_bad_configuration
from stream_gateway.app import serve
from stream_gateway.config import Config

_SWITCH_S = 0.00005
"""A thread that admits a caller gives up the lock of the interpreter some twenty times, and waits this long for it each
time that the event loop is busy: with a millisecond an opening took 190 ms beside 5 000 streams, not 100."""


def main() -> None:
    with stop_on_bad_configuration("stream-gateway"):
        config = Config.from_env()
    sys.setswitchinterval(_SWITCH_S)
    try:
        process.run("stream-gateway", partial(serve, config), log_format=config.log_format, level=config.log_level)
    except SystemExit as ended:
        # Python waits for threads before it ends, and one of ours may be waiting for a database that is silent.
        logging.shutdown()
        os._exit(int(ended.code or 0))


if __name__ == "__main__":
    main()
