"""The pages of the API document."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from typing import Any

import pytest
from flask.testing import FlaskClient

from chassis.problem_types import TYPES
from chassis.reference import Reference
from identity.app import create_app
from tip_testing.platform_plugin import Platform


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity")).test_client()


class Outline(HTMLParser):
    """What a page loads and links to, and whether anything in it is inline."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "style" or "style" in given or (tag == "script" and "src" not in given):
            self.inline.append(tag)
        self.inline += [name for name in given if name.startswith("on")]
        self.loaded += [given[name] or "" for name in ("src",) if name in given]
        self.loaded += [given["href"] or ""] if tag == "link" else []
        self.linked += [given["href"] or ""] if tag == "a" else []


def outline(page: str) -> Outline:
    found = Outline()
    found.feed(page)
    return found


def test_the_reference_loads_only_its_own_files_and_has_nothing_inline(client: FlaskClient) -> None:
    answer = client.get("/docs")
    found = outline(answer.text)

    assert found.loaded == ["/docs/docs.css", "/docs/docs.js", "/docs/try.js"] and found.inline == []
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/docs", "text/html"),
        ("/docs/docs.css", "text/css"),
        ("/docs/docs.js", "text/javascript"),
        ("/docs/try.js", "text/javascript"),
    ],
)
def test_the_files_of_the_reference_are_served_as_what_they_are(client: FlaskClient, path: str, kind: str) -> None:
    answer = client.get(path)

    assert (answer.status_code, answer.mimetype) == (200, kind)


def test_every_problem_that_the_reference_names_has_a_page(client: FlaskClient) -> None:
    linked = {link for link in outline(client.get("/docs").text).linked if link.startswith("/docs/problems/")}

    assert linked and {client.get(link).status_code for link in linked} == {200}


@pytest.mark.parametrize("code", TYPES)
def test_the_page_of_a_problem_says_what_it_means_and_what_to_do(client: FlaskClient, code: str) -> None:
    page: Any = client.get(f"/docs/problems/{code}")

    assert page.status_code == 200
    assert code in page.text and outline(page.text).inline == []


def test_the_page_of_a_problem_leads_to_the_operations_that_answer_with_it(client: FlaskClient) -> None:
    reference, problem = client.get("/docs").text, client.get("/docs/problems/invalid").text
    targets = [link.removeprefix("/docs#") for link in outline(problem).linked if link.startswith("/docs#")]

    assert targets and all(f'id="{target}"' in reference for target in targets)


@pytest.mark.parametrize(
    "path", ["/docs/", "/docs/problems/none", "/docs/problems/", "/docs/../web.py", "/docs/docs.html"]
)
def test_nothing_else_is_under_the_reference(client: FlaskClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_document_is_served_beside_its_pages(client: FlaskClient) -> None:
    first, second = (client.get("/openapi.json") for _ in range(2))

    assert (first.status_code, first.mimetype) == (200, "application/json")
    assert first.data == second.data and json.loads(first.data)["openapi"] == "3.1.0"


def test_a_defect_may_come_from_any_operation(client: FlaskClient) -> None:
    assert "Any operation." in client.get("/docs/problems/internal").text
    assert "Any operation." not in client.get("/docs/problems/not_found").text


def test_the_document_is_made_once_however_many_read_it_at_once() -> None:
    made = []

    def document() -> dict[str, Any]:
        made.append("document")
        time.sleep(0.05)
        return {"paths": {}}

    reference = Reference(document)
    with ThreadPoolExecutor(8) as readers:
        pages = set(readers.map(reference.page, ["/openapi.json", "/docs/problems/not_found"] * 8))

    assert made == ["document"] and len(pages) == 2
