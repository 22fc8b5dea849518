"""The health check of every container: HEALTH_URL answers 200, or HEALTH_PORT accepts a connection.

Only the standard library and none of the site packages (`python -IS`), because it runs every few seconds everywhere.
"""

import http.client
import os
import socket
import sys

TIMEOUT_S = 3


def healthy() -> bool:
    address = os.environ.get("HEALTH_URL", "")
    if not address:
        socket.create_connection(("127.0.0.1", int(os.environ["HEALTH_PORT"])), TIMEOUT_S).close()
        return True
    host, _, path = address.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
    connection.request("GET", f"/{path}")
    return connection.getresponse().status == http.HTTPStatus.OK


if __name__ == "__main__":
    try:
        sys.exit(not healthy())
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"not healthy: {error}")
