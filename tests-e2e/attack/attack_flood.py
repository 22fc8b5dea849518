"""The process behind a load: started as a script, so that it has little to import.

It sends until it is stopped; then it prints how often each tenth of a second saw each answer, as JSON. Attackers have
machines of their own: here they take only what the platform, and whoever measures it, leave of the processors.
"""

import json
import os
import pickle
import re
import signal
import sys
import threading
import time
from collections import Counter

from attack_http import Answer, HttpConnection, NoAnswer

APART = 10
"""By how much lower the priority of an attacker's process is."""
NO_ANSWER = "none"
Counts = Counter[tuple[int, str]]
"""By tenth of a second of the monotonic clock, which processes share, and status; of a refusal with its code."""
TENTHS = 10
_CODE = re.compile(rb'"code": ?"([a-z_]+)"')
_PUSHED_BACK = re.compile(rb'"code": ?"(overloaded)"')
"""Of a command in a batch, which is answered 200 all the same."""


def flood(address: tuple[str, int], requests: list[bytes], connections: int, streams: bool) -> list[Counts]:
    """`streams`: of each answer only the head is read, since its end would not come."""
    counts: list[Counts] = [Counter() for _ in range(connections)]
    answer = _head if streams else _whole

    def send(number: int) -> None:
        turn = number
        with HttpConnection(address) as http:
            while True:
                status = answer(http, requests[turn % len(requests)])
                counts[number][int(time.monotonic() * TENTHS), status] += 1
                turn += 1

    for number in range(connections):
        threading.Thread(target=send, args=(number,), daemon=True).start()
    return counts


def _whole(http: HttpConnection, request: bytes) -> str:
    try:
        return shown(http.exchange(request))
    except NoAnswer:
        http.close()
        return NO_ANSWER


def shown(answer: Answer) -> str:
    """Its status; of a refusal with its code."""
    code = (_CODE if answer.status >= 400 else _PUSHED_BACK).search(answer.body)
    return f"{answer.status} {code[1].decode()}" if code else str(answer.status)


def _head(http: HttpConnection, request: bytes) -> str:
    try:
        http.send(request)
        return str(http.head()[0])
    except (NoAnswer, OSError):
        return NO_ANSWER
    finally:
        http.close()


if __name__ == "__main__":
    os.nice(APART)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    running = flood(*pickle.load(sys.stdin.buffer))
    while not stop.wait(1.0):
        pass
    seen = sum((Counter(dict(counts)) for counts in running), Counter())
    json.dump([[tenth, status, number] for (tenth, status), number in seen.items()], sys.stdout)
