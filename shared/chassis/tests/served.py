"""gunicorn with our settings and worker, serving served_app in processes of its own."""

import socket
from contextlib import suppress
from pathlib import Path

from tip_testing import raw_http
from tip_testing.ports import reserved_port
from tip_testing.processes import start
from tip_testing.waiting import eventually

FOLDER = Path(__file__).parent


class Server:
    def __init__(
        self, *options: str, workers: int = 1, threads: int = 8, app: str = "create_app", **environment: str
    ) -> None:
        self.port = reserved_port()
        settings = ("-c", "python:chassis.gunicorn_conf", "--pythonpath", str(FOLDER), *options)
        settings_of_web = {
            "WEB_PORT": str(self.port),
            "WEB_WORKERS": str(workers),
            "WEB_THREADS": str(threads),
        }
        command = (str(FOLDER / "served_by_gunicorn.py"), *settings, f"served_app:{app}()")
        self.process = start(*command, environment={**settings_of_web, **environment})

    def open(self) -> socket.socket:
        return eventually(self._opened, raw_http.PATIENCE_S)

    def _opened(self) -> socket.socket | None:
        assert self.process.returncode() is None, self.process.output()
        with suppress(OSError):
            return raw_http.opened(self.port)
        return None

    def request(self, connection: socket.socket, head: str, body: bytes = b"") -> str:
        """Status and body of the answer to a request that names a host."""
        connection.sendall(f"{head}\r\nHost: tip\r\n".encode() + b"\r\n" + body)
        answer = raw_http.read_answer(connection)
        return f"{answer.status} {answer.body.decode()}" if answer else ""

    def end(self) -> None:
        self.process.end()
