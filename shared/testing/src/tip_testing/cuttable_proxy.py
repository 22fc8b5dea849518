"""For tests: a line that is cut in the middle of what is said over it."""

import select
import socket
import threading


class Wire:
    """A line to the database that is cut at the next question with certain words in it."""

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
        """`deliver` lets the question through, so that only its answer is lost; `for_good` takes nobody any more."""
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
        """Until one end hangs up or the line is cut; a cut line has delivered its question or not."""
        with near, socket.create_connection(self._target) as far:
            while True:
                if self._hang_up.is_set():
                    return
                for one in select.select([near, far], [], [], 0.05)[0]:
                    data = _received(one)
                    cut = bool(one is near and self.words and self.words in data)
                    if not data or (cut and not self._deliver):
                        self.words = None if cut else self.words
                        return
                    (far if one is near else near).sendall(data)
                    if cut:
                        _received(far)
                        self.words = None
                        return


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(65536)
    except OSError:
        return b""
