"""People with a browser that has no window: they sign in as everybody does, and follow what pages say."""

import html
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

import requests

TIMEOUT_S = 30


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found}


@dataclass
class Visitor:
    """Somebody at the platform's address, with cookies."""

    base: str
    cookies: requests.Session = field(default_factory=requests.Session)

    def get(self, path: str, **headers: str) -> requests.Response:
        return self.cookies.get(urljoin(self.base, path), headers=headers, allow_redirects=False, timeout=TIMEOUT_S)

    def post(self, path: str, form: dict[str, Any], **headers: str) -> requests.Response:
        address = urljoin(self.base, path)
        return self.cookies.post(address, data=form, headers=headers, allow_redirects=False, timeout=TIMEOUT_S)

    def follow(self, answer: requests.Response) -> requests.Response:
        """To where redirects lead."""
        while answer.status_code in (302, 303):
            answer = self.get(urljoin(answer.url, answer.headers["Location"]))
        return answer

    def sign_in(self, email: str, password: str, path: str = "/console") -> requests.Response:
        """Through identity's login and its page of consent; the page that was wanted."""
        login = self.follow(self.get(path))
        form = hidden(login.text) | {"email": email, "password": password}
        consent = self.follow(self.post("/login", form))
        return self.follow(self.consent(consent))

    def consent(self, page: requests.Response) -> requests.Response:
        [action] = re.findall(r'<form method="post" action="(/oauth/authorize[^"]*)"', page.text)
        return self.post(html.unescape(action), hidden(page.text) | {"decision": "allow"})

    def submit(self, path: str, **form: str) -> requests.Response:
        """A form of ours, with the token that it carries."""
        token = hidden(self.get("/console").text)["csrf"]
        return self.follow(self.post(path, {"csrf": token, **form}))
