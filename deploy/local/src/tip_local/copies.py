"""Processes that are copies of the nursery: the supervisor's side."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from tip_local.errors import Fault
from tip_local.processes import POLL_SECONDS, with_parent_death_signal

CAN_COPY = sys.platform == "linux"
"""On other systems a process that only forks is not safe, or not known to be."""


class Nursery:
    """The process that makes the copies, started when it is first needed, and again when it has died."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def open(self) -> None:
        """Have it import; whoever needs a copy meanwhile waits. To be called from the main thread."""
        if self._process and self._process.poll() is None:
            return
        self.close()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tip_local.nursery", str(theirs.fileno())]
        self._process = subprocess.Popen(
            with_parent_death_signal(command, signal.SIGKILL),
            env=dict(self._environment),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def request(self, body: Mapping[str, Any], descriptors: Sequence[int] = ()) -> Any:
        """Raises OSError, or ValueError, if the nursery has died."""
        if self._channel is None:
            raise BrokenPipeError("the nursery is not open")
        socket.send_fds(self._channel, [json.dumps(body).encode()], descriptors)
        return json.loads(self._channel.recv(1024))

    def close(self) -> None:
        if self._channel:
            self._channel.close()
        if self._process:
            self._process.kill()
            self._process.wait()
        self._channel = self._process = None


class Copy:
    """What `subprocess.Popen` is for a process that was executed."""

    def __init__(
        self,
        nursery: Nursery,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        death_signal: signal.Signals,
        descriptors: Sequence[int] = (),
        niceness: int = 0,
    ) -> None:
        self._nursery = nursery
        self.returncode: int | None = None
        output, theirs = os.pipe()
        reads, writes = os.pipe()
        self.stdout: BinaryIO = os.fdopen(output, "rb")
        body = {"name": name, "arguments": list(arguments), "descriptors": list(descriptors), "niceness": niceness}
        try:
            with os.fdopen(writes, "wb") as pipe:
                nursery.open()
                self.pid = int(nursery.request({**body, "death_signal": death_signal}, [theirs, reads, *descriptors]))
                self._ended = os.pidfd_open(self.pid)
                pipe.write(json.dumps(dict(environment)).encode())
        except (OSError, ValueError) as error:
            self.stdout.close()
            raise Fault(f"{name} could not be started: the nursery has ended") from error
        finally:
            os.close(theirs)
            os.close(reads)

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], 0)[0]:
            self.returncode = self._exit_code()
            os.close(self._ended)
        return self.returncode

    def _exit_code(self) -> int:
        try:
            code: int | None = self._nursery.request({"poll": self.pid})
        except (OSError, ValueError):  # the nursery has died, and its copies with it
            code = None
        return -signal.SIGKILL if code is None else code

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(POLL_SECONDS)
        return code
