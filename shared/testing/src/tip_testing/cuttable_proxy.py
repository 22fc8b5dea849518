"""A TCP proxy that cuts a connection in the middle of a conversation."""

import select
import socket
import threading


class CuttableProxy:
    """A proxy in front of the database that cuts the connection at the next query with certain words in it."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.words: bytes | None = None
        self._deliver, self._for_good = True, False
        self._hang_up = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self, words: bytes, *, deliver: bool, for_good: bool = False) -> None:
        """`deliver` lets the query through and loses only its answer; `for_good` refuses every connection after it."""
        self.words, self._deliver, self._for_good = words, deliver, for_good

    def refuse(self) -> None:
        self._for_good = True

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._hang_up.set()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._for_good and self.words is None:
                near.close()
                continue
            self._threads.append(threading.Thread(target=self._carry, args=(near,), daemon=True))
            self._threads[-1].start()

    def _carry(self, near: socket.socket) -> None:
        """Until one end hangs up or the connection is cut, with or without the query delivered."""
        with near, socket.create_connection(self._target) as far:
            while True:
                if self._hang_up.is_set():
                    return
                for end in select.select([near, far], [], [], 0.05)[0]:
                    data = _received(end)
                    cut = bool(end is near and self.words and self.words in data)
                    if not data or (cut and not self._deliver):
                        self.words = None if cut else self.words
                        return
                    (far if end is near else near).sendall(data)
                    if cut:
                        _received(far)
                        self.words = None
                        return


def _received(end: socket.socket) -> bytes:
    try:
        return end.recv(65536)
    except OSError:
        return b""
