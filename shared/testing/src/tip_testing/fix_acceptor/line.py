"""A line to a FIX acceptor that counts messages, and can be cut or held up at each of them."""

import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

_FRAME = re.compile(rb"8=FIX\.4\.4\x01.*?\x0110=\d{3}\x01", re.DOTALL)

Fault = Callable[[int, bytes], bool]
"""Of the nth message, before it is passed on: whether it is lost, with the line. It may do whatever else it likes."""


class FixLine:
    """Listens until `close`. Every line that is opened passes the acceptor's messages and ours, one by one."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.count = 0
        self.fault: Fault = lambda _number, _message: False
        self.is_silent = False
        """Whether nothing gets through, in either direction, without a word."""
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                threading.Thread(target=self._open, args=(near,), daemon=True).start()

    def _open(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self._target, timeout=5)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        threading.Thread(target=self._carry, args=(near, far), daemon=True).start()
        self._carry(far, near)

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        """Until one end hangs up, or a message is lost."""
        rest = b""
        with suppress(OSError):
            while data := source.recv(65_536):
                rest += data
                for frame in _FRAME.findall(rest):
                    if self._is_lost(frame):
                        raise OSError
                    sink.sendall(frame)
                rest = _FRAME.sub(b"", rest)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _is_lost(self, frame: bytes) -> bool:
        while self.is_silent:
            time.sleep(0.05)
        with self._lock:
            self.count += 1
            return self.fault(self.count, frame)
