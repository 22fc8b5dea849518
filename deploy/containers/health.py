"""The health check of every container: HEALTH_URL, or else /health/live on HEALTH_PORT, answers 200.

Only the standard library and none of the site packages (`python -IS`), because it runs every few seconds everywhere.
"""

import http.client
import os
import sys

TIMEOUT_S = 3


def healthy() -> bool:
    address = os.environ.get("HEALTH_URL") or f"http://127.0.0.1:{os.environ['HEALTH_PORT']}/health/live"
    host, _, path = address.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
    connection.request("GET", f"/{path}")
    return connection.getresponse().status == http.HTTPStatus.OK


if __name__ == "__main__":
    try:
        sys.exit(not healthy())
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"not healthy: {error}")
