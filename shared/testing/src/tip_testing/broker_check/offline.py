"""No socket of Python's own leaves this machine while a simulator is checked, whatever address an adapter uses.

A library that opens sockets by itself, in C, is not seen, nor is another process.
"""

import ipaddress
import sys
from typing import Any

_TO_AN_ADDRESS = ("socket.connect", "socket.sendto", "socket.sendmsg")
_BY_NAME = "socket.getaddrinfo"


def forbid_connections_beyond_loopback() -> None:
    """For the rest of this process."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _TO_AN_ADDRESS and isinstance(arguments[1], tuple):  # otherwise it is a Unix socket, or connected
        _refuse_beyond_loopback(arguments[1][0])
    elif event == _BY_NAME and arguments[0] is not None:
        _refuse_beyond_loopback(arguments[0])


def _refuse_beyond_loopback(host: str | bytes) -> None:
    name = host.decode(errors="replace") if isinstance(host, bytes) else host
    if not _is_here(name):
        raise OSError(f"offline: a connection to {name} is not allowed")


def _is_here(name: str) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
