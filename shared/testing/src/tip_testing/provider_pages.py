"""The pages of an OpenID Connect provider that nobody here wrote, submitted as a browser does."""

import html
import re
from collections.abc import Mapping
from urllib.parse import urljoin

import requests

PATIENCE_S = 60
MOST_PAGES = 12


def submit_pages(
    address: str, known: Mapping[str, str], session: requests.Session | None = None, until: str | None = None
) -> requests.Response:
    """Fill in and send the first form of each page, until one has none, or has an address that begins with `until`."""
    session = session or requests.Session()
    page = session.get(address, timeout=PATIENCE_S)
    for _ in range(MOST_PAGES):
        form = re.search(r"<form\b([^>]*)>(.*?)</form>", page.text, re.DOTALL)
        if form is None or (until and page.url.startswith(until)):
            return page
        action = re.search(r'action="([^"]*)"', form[1])
        target = urljoin(page.url, html.unescape(action[1])) if action else page.url
        page = session.post(target, data=fields_of(form[2], known), timeout=PATIENCE_S)
    raise AssertionError(f"no end of pages: {page.text[:2000]}")


def fields_of(form: str, known: Mapping[str, str]) -> dict[str, str]:
    tags = re.findall(r"<(?:input|button)\b[^>]*>", form)
    named = [(re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)) for tag in tags]
    sent: dict[str, str] = {}
    for name, value in named:
        if name and name[1] not in sent:
            sent[name[1]] = known.get(name[1], html.unescape(value[1]) if value else "")
    return sent
