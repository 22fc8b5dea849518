"""`python -m stream_gateway`."""

from functools import partial

from chassis import process
from chassis.config import stop_on_bad_configuration
from stream_gateway.app import serve
from stream_gateway.config import Config


def main() -> None:
    with stop_on_bad_configuration("stream-gateway"):
        config = Config.from_env()
    process.run("stream-gateway", partial(serve, config), log_format=config.log_format, level=config.log_level)


if __name__ == "__main__":
    main()
