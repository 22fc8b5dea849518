"""HTTP connections that ask, immediately before a request is written, whether it may still go out.

Between deciding and writing lie a connection to be made and, if the process is suspended there, any length of time.
So the question is put where the bytes leave: after the connection is there, before each piece of the request.
"""

import threading
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from intents.brokers.protocol import Check, no_check


class Written(threading.local):
    """What this thread's request has to pass."""

    check: Check = staticmethod(no_check)


written = Written()


class _CheckedConnection(HTTPConnection):
    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        written.check()
        super().send(data)


class _CheckedSecureConnection(HTTPSConnection):
    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        written.check()
        super().send(data)


class _CheckedPool(HTTPConnectionPool):
    ConnectionCls = _CheckedConnection


class _CheckedSecurePool(HTTPSConnectionPool):
    ConnectionCls = _CheckedSecureConnection


class CheckedAdapter(HTTPAdapter):
    """What the check raises comes out of the call as it is; the connection is closed on an incomplete request."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": _CheckedPool, "https": _CheckedSecurePool}
