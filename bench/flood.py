"""Load that means harm, from a process of its own: connections that send the next request as soon as they may.

`python -m bench.flood PORT CONNECTIONS FILE`: the requests are the lines of the file, in base64 and in turn. It runs
until it is ended, and then prints how many answers of each status there were.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence


def request(method: str, path: str, body: str = "", **headers: str) -> bytes:
    """A request as it is sent."""
    named = {"Host": "bench", "Content-Length": str(len(body)), **headers}
    if body:
        named["Content-Type"] = "application/json"
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n{body}".encode()


@contextlib.contextmanager
def flood(port: int, connections: int, requests: Sequence[bytes]) -> Iterator[Counter[str]]:
    """While the block runs; what was answered is known when it has ended."""
    answers: Counter[str] = Counter()
    with tempfile.NamedTemporaryFile("wb", suffix=".requests") as file:
        file.writelines(base64.b64encode(request) + b"\n" for request in requests)
        file.flush()
        command = [sys.executable, "-m", "bench.flood", str(port), str(connections), file.name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            yield answers
        finally:
            process.terminate()
            answers.update(json.loads(process.communicate()[0] or "{}"))


async def _connection(port: int, requests: Iterator[bytes], answers: Counter[str]) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while True:
                writer.write(next(requests))
                answers[await _status(reader)] += 1
        except (OSError, asyncio.IncompleteReadError):
            answers["lost"] += 1
            await asyncio.sleep(0.05)


async def _status(reader: asyncio.StreamReader) -> str:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    await reader.readexactly(length)
    return head[9:12].decode()


async def _main(port: int, connections: int, file: str) -> None:
    with open(file, "rb") as lines:
        requests = itertools.cycle([base64.b64decode(line) for line in lines])
    answers: Counter[str] = Counter()
    sending = [asyncio.create_task(_connection(port, requests, answers)) for _ in range(connections)]
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    for task in sending:
        task.cancel()
    print(json.dumps(answers))


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
