"""The manual as it is served: the Markdown files of the repository, each made into HTML for whoever reads it first."""

import json
import re
from functools import cache
from html import escape
from pathlib import Path
from posixpath import dirname, normpath
from typing import NamedTuple
from urllib.parse import urlsplit

from console import manual_pages
from console.image_size import image_size
from console.manual_markdown import Heading, passages, render
from console.manual_pages import FOLDER, HOME, IN_ORDER, Page

SEARCH = f"{HOME}/search.json"
TYPES = {".webp": "image/webp"}
_STYLE = re.compile(r"<style>.*?</style>\s*", re.DOTALL)


def _root() -> Path:
    """The repository; in a wheel the part of it that the wheel carries."""
    package = Path(__file__).parent
    carried = package / "manual_files"
    return carried if carried.is_dir() else package.parents[3]


ROOT = _root()
PAGES = (*IN_ORDER, *manual_pages.decisions(file.name for file in (ROOT / "docs" / "decisions").glob("*.md")))
BY_ADDRESS = manual_pages.by_address(PAGES)
BY_FILE = manual_pages.by_file(PAGES)
IMAGES = {f"{HOME}/images/{file.name}": file for file in sorted((ROOT / FOLDER / "images").glob("*.*"))}
"""Nothing that is not in these tables is read."""


class Text(NamedTuple):
    """A page as it is shown."""

    title: str
    html: str
    contents: tuple[Heading, ...]


@cache
def text(page: Page) -> Text:
    def link(address: str) -> str | None:
        return served(page, address)

    def picture(address: str, description: str) -> str:
        return _picture(_file(page, address), description)

    made = render(source(page), link, picture)
    title = next((heading.text for heading in made.headings if heading.level == 1), page.title)
    return Text(title, made.html, tuple(heading for heading in made.headings if heading.level in (2, 3)))


@cache
def search_index() -> bytes:
    """Every passage of every page of the navigation, with where it is."""
    rows = [
        {"page": page.title, "title": passage.heading.text, "at": _at(page, passage.heading), "text": passage.text}
        for page in IN_ORDER
        for passage in passages(source(page))
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def source(page: Page) -> str:
    return (ROOT / page.file).read_text(encoding="utf-8")


def served(page: Page, address: str) -> str | None:
    """Where a link of the page leads here; None if what it names is in the repository alone."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or address.startswith(("/", "#")):
        return address
    target = BY_FILE.get(_file(page, parts.path)) or BY_FILE.get(f"{_file(page, parts.path)}/README.md")
    if target is None:
        return None
    return f"{target.address}#{parts.fragment}" if parts.fragment else target.address


def _at(page: Page, heading: Heading) -> str:
    return page.address if heading.level == 1 else f"{page.address}#{heading.id}"


def _file(page: Page, address: str) -> str:
    return normpath(f"{dirname(page.file)}/{address}")


def _picture(file: str, description: str) -> str:
    if file.endswith(".svg"):
        return _drawing(file)
    name, dark, described = Path(file).name, Path(file).name.replace(".", "-dark."), escape(description)
    kind = "shot phone" if "-phone." in name else "shot"
    return _image(name, described, f"{kind} only-light") + _image(dark, described, f"{kind} only-dark")


def _image(name: str, described: str, kind: str) -> str:
    address = f"{HOME}/images/{name}"
    width, height = image_size(IMAGES[address])
    return f'<img class="{kind}" src="{address}" alt="{described}" width="{width}" height="{height}" loading="lazy">'


def _drawing(file: str) -> str:
    """In the page itself, so that it has the colours of the theme; by itself a drawing brings a style of its own."""
    return _STYLE.sub("", (ROOT / file).read_text(encoding="utf-8"))
