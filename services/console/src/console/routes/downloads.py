"""Files of the API, passed on to a browser, which has no token of its own, as they come."""

from collections.abc import Mapping

from flask import Response

from console.routes import common


def passed_on(path: str, name: str, query: Mapping[str, str]) -> Response:
    file = common.api().download(path, **query)
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    }
    response = Response(file.chunks, 200, headers, content_type="application/jsonl")
    response.call_on_close(file.close)
    return response
