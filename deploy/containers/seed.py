"""One-shot after the migration: the demo data, local.json for callers, and the one document of the API."""

import json
import time
from pathlib import Path
from typing import Any

from container_stack import FOLDER, container_stack
from sqlalchemy.exc import DBAPIError
from werkzeug.test import Client

from chassis.db import is_unavailable
from chassis.problem_types import TYPES
from tip_local import demo
from tip_local.datastore import write_private
from tip_local.process_table import web_env
from tip_local.stack import Stack
from tip_local.web import create_app

ATTEMPTS = 5
PAGES = {
    "/openapi.json": "openapi.json",
    "/docs": "docs.html",
    "/docs/docs.css": "docs/docs.css",
    "/docs/docs.js": "docs/docs.js",
    "/docs/try.js": "docs/try.js",
    **{f"/docs/problems/{code}": f"docs/problems/{code}.html" for code in TYPES},
}


def publish_pages(stack: Stack, folder: Path) -> None:
    """What the embedded runtime answers itself; the ingress serves it from a volume."""
    client = Client(create_app(web_env(stack)))
    (folder / "docs" / "problems").mkdir(parents=True, exist_ok=True)
    for path, name in PAGES.items():
        (folder / name).write_bytes(client.get(path).data)


def seed_patiently(stack: Stack) -> dict[str, Any]:
    """Seeding may be repeated, and on a small machine everything else is starting at the same moment."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return demo.seed(stack)
        except DBAPIError as error:
            if attempt == ATTEMPTS or not is_unavailable(error):
                raise
            time.sleep(2)
    raise AssertionError


def main() -> None:
    stack = container_stack(*((FOLDER / server / "password").read_text() for server in ("postgres", "redis")))
    local = {**stack.addresses(), "ca": "ca.crt", **seed_patiently(stack)}
    write_private(stack.home.local_file, json.dumps(local, indent=2))
    publish_pages(stack, FOLDER / "public")


if __name__ == "__main__":
    main()
