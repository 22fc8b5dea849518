"""A console in this process, on the platform of the tests, some of whose calls get no answer."""

from collections.abc import Callable
from typing import Any

import httpx
from flask.testing import FlaskClient
from people import Visitor

from console import model
from console.app import create_app
from console.routes.common import SESSION


class Desk:
    """Somebody who has signed in, at that console."""

    def __init__(self, stack: Any, visitor: Visitor, is_lost: Callable[[httpx.Request], bool]) -> None:
        self.methods: list[str] = []
        self.paths: list[str] = []
        self._is_lost = is_lost
        self._cookie = str(visitor.cookies.cookies.get(SESSION))
        self._client = self._started(stack)

    def get(self, path: str) -> Any:
        return self._client.get(path)

    def submit(self, path: str, **form: str) -> Any:
        return self._client.post(path, data={"csrf": model.form_token(self._cookie), **form})

    def close(self) -> None:
        self._api.close()

    def _started(self, stack: Any) -> FlaskClient:
        secrets = {"REDIS_URL": stack.redis_url(), "CURSOR_KEY": stack.sessions()._key.decode()}
        app = create_app({**secrets, "PUBLIC_URL": stack.base})
        self._api = app.extensions["deps"].api._client
        self._api.event_hooks = {"request": [self._lose]}
        client = app.test_client()
        client.set_cookie(SESSION, self._cookie, domain="localhost")
        return client

    def _lose(self, request: httpx.Request) -> None:
        is_lost = self._is_lost(request)
        self.methods.append(request.method)
        self.paths.append(request.url.path)
        if is_lost:
            raise httpx.ReadTimeout("lost", request=request)
