"""gunicorn with our settings and worker, serving served_app in processes of its own."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from tip_testing import raw_http
from tip_testing.ports import reserved_port


class Server:
    def __init__(self, *options: str, workers: int = 1, threads: int = 8, **environment: str) -> None:
        self.port = reserved_port()
        settings = ("-c", "python:chassis.gunicorn_conf", *options)
        command = [sys.executable, "-m", "gunicorn", *settings, "served_app:create_app()"]
        settings_of_web = {
            "WEB_PORT": str(self.port),
            "WEB_WORKERS": str(workers),
            "WEB_THREADS": str(threads),
            "PYTHONPATH": str(Path(__file__).parent),
        }
        self.process = subprocess.Popen(command, env={**os.environ, **settings_of_web, **environment})

    def open(self) -> socket.socket:
        deadline = time.monotonic() + raw_http.PATIENCE_S
        while True:
            try:
                return raw_http.opened(self.port)
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)

    def ask(self, connection: socket.socket, head: str, body: bytes = b"") -> str:
        """Status and body of the answer to a request that names a host."""
        connection.sendall(f"{head}\r\nHost: tip\r\n".encode() + b"\r\n" + body)
        answer = raw_http.read_answer(connection)
        return f"{answer.status} {answer.body.decode()}" if answer else ""

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
