"""The manual, which anybody may read: its pages, their pictures and what the search looks through."""

from flask import Blueprint, Response
from flask.typing import ResponseReturnValue

from chassis.problems import Problem
from console import manual
from console.manual_pages import HOME, SECTIONS, neighbours
from console.routes import common

bp = Blueprint("manual", __name__)
_HEADERS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}


@bp.get(HOME)
def show_first_page() -> ResponseReturnValue:
    return _page(HOME)


@bp.get(f"{HOME}/<path:name>")
def show_page(name: str) -> ResponseReturnValue:
    address = f"{HOME}/{name}"
    if address == manual.SEARCH:
        return Response(manual.search_index(), 200, _HEADERS, content_type="application/json")
    if image := manual.IMAGES.get(address):
        return Response(image.read_bytes(), 200, _HEADERS, content_type=manual.TYPES[image.suffix])
    return _page(address)


def _page(address: str) -> ResponseReturnValue:
    page = manual.BY_ADDRESS.get(address)
    if page is None:
        raise Problem(404, detail="The manual has no such page.")
    before, after = neighbours(page)
    text, sections = manual.text(page), SECTIONS
    return common.page("manual.html", page=page, text=text, sections=sections, before=before, after=after)
