"""The API document, for programs and as pages to read: the reference, and one for every kind of problem.

Nothing comes from outside. Every text is made once: it is long, and anybody may read it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

from flask import Blueprint, Flask, Response
from flask.typing import ResponseReturnValue
from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup, escape

from chassis import problems
from chassis.problem_types import TYPES

DOCUMENT = "/openapi.json"
HTML = "text/html; charset=utf-8"
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
"""Of every answer that is HTML: nothing but our own style and script is used, and nothing is sent to anybody else."""

Document = Mapping[str, Any]


class Page(NamedTuple):
    content_type: str
    text: str


class Reference:
    """The document and everything that is served under `/docs`. Each page is made for whoever reads it first."""

    def __init__(self, document: Callable[[], Document]) -> None:
        self._make_document = document
        self._document: Document | None = None
        self._made: dict[str, Page] = {}
        self._making = Lock()

    def page(self, path: str) -> Page:
        if path not in self._made:
            with self._making:
                if path not in self._made:
                    self._made[path] = self._page(path)
        return self._made[path]

    def _page(self, path: str) -> Page:
        name = path.removeprefix("/docs/")
        if path == DOCUMENT:
            return Page("application/json", json.dumps(self._read(), separators=(",", ":")))
        if path == "/docs":
            return Page(HTML, _template("docs.html", document=self._read()))
        if name in _FILES:
            return Page(_FILES[name], _template(name))
        code = name.removeprefix("problems/")
        if code == name or code not in TYPES:
            raise problems.not_found()
        operations = list(_operations_with(self._read(), code))
        return Page(HTML, _template("problem.html", code=code, kind=TYPES[code], operations=operations))

    def _read(self) -> Document:
        if self._document is None:
            self._document = self._make_document()
        return self._document


def serve(routes: Flask | Blueprint, document: Callable[[], Document]) -> None:
    """Serve the document and its pages there."""
    reference = Reference(document)

    def page(path: str) -> ResponseReturnValue:
        found = reference.page(path)
        return Response(found.text, content_type=found.content_type)

    routes.add_url_rule(DOCUMENT, "document", lambda: page(DOCUMENT))
    routes.add_url_rule("/docs", "docs", lambda: page("/docs"))
    routes.add_url_rule("/docs/<path:name>", "docs_page", lambda name: page(f"/docs/{name}"))


_SCRIPT = "text/javascript; charset=utf-8"
_FILES = {"docs.css": "text/css; charset=utf-8", "docs.js": _SCRIPT, "try.js": _SCRIPT}


def _template(name: str, **values: Any) -> str:
    return _templates().get_template(name).render(**values)


@cache
def _templates() -> Environment:
    found = Environment(loader=PackageLoader("chassis"), autoescape=select_autoescape(("html",)))
    found.trim_blocks = found.lstrip_blocks = True
    found.filters |= {"pretty": _pretty, "marked": _marked}
    return found


def _pretty(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)


def _marked(text: str) -> Markup:
    """What stands between backticks is code, as in the document."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped just before # nosec B704


def _operations_with(document: Document, code: str) -> Iterator[dict[str, str]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if any(code in answer.get("x-problem-codes", ()) for answer in operation["responses"].values()):
                about = {"id": operation["operationId"], "summary": operation["summary"]}
                yield {"method": method.upper(), "path": path, **about}
