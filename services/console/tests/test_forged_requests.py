"""What other sites cannot make a browser do: send forms, frame pages, run code."""

import pytest
from people import Visitor, hidden

from console.routes.common import PAGE_HEADERS

FORMS = ("/console/sign-out",)


@pytest.mark.parametrize("path", FORMS)
def test_a_form_without_the_token_of_this_session_is_refused(signed_in, path):
    visitor, other = signed_in("admin"), signed_in("trader")
    foreign = hidden(other.get("/console").text)["csrf"]

    assert visitor.post(path, {}).status_code == 403
    assert visitor.post(path, {"csrf": foreign}).status_code == 403
    assert visitor.get("/console").status_code == 200


@pytest.mark.parametrize("path", FORMS)
def test_a_form_that_another_site_sends_is_refused_whatever_it_carries(signed_in, path):
    visitor = signed_in("admin")
    token = hidden(visitor.get("/console").text)["csrf"]

    assert visitor.post(path, {"csrf": token}, Origin="https://evil.example").status_code == 403
    assert visitor.get("/console").status_code == 200


@pytest.mark.parametrize("path", ["/console", "/console/signed-out", "/console/nothing", "/console/callback"])
def test_every_page_may_be_framed_by_nobody_and_runs_no_inline_code(signed_in, path):
    page = signed_in("admin").get(path)

    assert {name: page.headers.get(name) for name in PAGE_HEADERS} == PAGE_HEADERS
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    assert "<style" not in page.text and "style=" not in page.text and " onclick" not in page.text


def test_another_method_is_refused(stack):
    assert Visitor(stack.base).get("/console/sign-out").status_code == 405


def test_the_theme_is_remembered_and_is_one_of_two(signed_in):
    visitor = signed_in("admin")
    page = visitor.follow(visitor.post("/console/theme", {"theme": "dark", "next": "/console"}))
    assert '<html lang="en" data-theme="dark">' in page.text

    page = visitor.follow(visitor.post("/console/theme", {"theme": '"><script>', "next": "https://evil.example"}))
    assert page.url.endswith("/console") and '<html lang="en">' in page.text
