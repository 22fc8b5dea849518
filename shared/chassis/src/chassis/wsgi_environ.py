"""An ASGI request as WSGI describes it."""

import io
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from chassis import http_rules

Environ = dict[str, Any]


def decoded_path(scope: Mapping[str, Any]) -> str:
    return unquote_to_bytes(_path(scope["raw_path"])).decode(errors="replace")


def environ(scope: Mapping[str, Any], body: bytes) -> Environ:
    """The request as WSGI has it."""
    path, query = _path(scope["raw_path"]), scope["query_string"].decode("latin-1")
    server, client = scope["server"] or ("", 0), scope["client"] or ("", 0)
    found: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "RAW_URI": path.decode("latin-1") + (f"?{query}" if query else ""),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": client[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        http_rules.ARRIVED: scope[http_rules.ARRIVED],
    }
    for raw_name, raw_value in scope["headers"]:
        if raw_name == b"transfer-encoding":
            continue  # undone by the server: what is here has a length, below
        name = raw_name.decode("latin-1").upper().replace("-", "_")
        variable = name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
        value = raw_value.decode("latin-1")
        if variable in found:
            found.setdefault(http_rules.REPEATED_HEADERS, set()).add(variable)
            value = f"{found[variable]},{value}"
        found[variable] = value
    found.setdefault("CONTENT_LENGTH", str(len(body)))
    return found


def _path(target: bytes) -> bytes:
    """The path of the target, which may be a whole address."""
    _scheme, found, rest = target.partition(b"://")
    return b"/" + rest.partition(b"/")[2] if found and not target.startswith(b"/") else target
