"""No connection leaves this machine while a simulator is checked, whatever address an adapter uses."""

import ipaddress
import sys
from typing import Any

_EVENTS = ("socket.connect", "socket.sendto")


def forbid_connections_beyond_loopback() -> None:
    """For the rest of this process."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _EVENTS and not _is_here(arguments[1]):
        raise OSError(f"offline: a connection to {arguments[1][0]} is not allowed")


def _is_here(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a Unix socket
    try:
        return address[0] == "localhost" or ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        return False
