"""A TCP proxy that resets connections, and loses answers to requests that it has delivered."""

import random
import socket
import struct
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

_RESET = struct.pack("ii", 1, 0)


class CuttingProxy:
    """In front of one port; `loses` is the share of answers that never arrive."""

    def __init__(self, address: str, *, loses: float = 0.0, seed: int = 7) -> None:
        parts = urlsplit(address if "//" in address else f"//{address}")
        self._target = (parts.hostname or "", parts.port or 0)
        self._loses, self._chance = loses, random.Random(seed)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Accept no connection any more, and reset every one."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> bool:
        """Reset every connection; whether there was one."""
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            self._reset(end)
        self.cuts += bool(ends)
        return bool(ends)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                if self._listener.fileno() < 0:
                    return
                continue
            try:
                far = socket.create_connection(self._target)
            except OSError:
                self._reset(near)
                continue
            with self._lock:
                self._open |= {near, far}
            for source, sink, is_answer in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._carry, args=(source, sink, is_answer), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if is_answer and self._chance.random() < self._loses:
                    self.cuts += 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            self._reset(end)
        with self._lock:
            self._open -= {source, sink}

    def _reset(self, end: socket.socket) -> None:
        with suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            end.close()
