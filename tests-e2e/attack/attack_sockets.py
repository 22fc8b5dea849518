"""What no client library would send: smuggling shapes, half requests, slow requests, on every listener."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from attack_findings import Findings
from attack_http import Answer, HttpConnection, NoAnswer, written
from attack_judge import wrong
from attack_options import Size
from attack_platform import Platform
from attack_progress import Progress
from attack_socket_cases import CASES, GRPC_CASES, Case, Slow, slow_cases
from attack_tenants import Builder, Tenant, bearer, keyed

PART = "sockets"
ANSWER_S = 20.0
"""Longer than any answer to a whole request takes, shorter than the time a body may take."""
PIPELINED = 40
ANNOUNCED = (65_537, 10**9, 10**18, 2**64)


Job = tuple[str, Callable[[], None]]
"""A case, and what plays it."""


def run(platform: Platform, builder: Builder, size: Size, seed: int, findings: Findings, progress: Progress) -> None:
    tenant = builder.tenant("smuggled", trades=False)
    jobs: list[Job] = []
    for name, address in (("web", platform.web), ("events", platform.events)):
        attacked = _Listener(name, address, tenant, findings)
        jobs += attacked.jobs(slow_cases(tenant.accounts["paper"]) if size.patience else (), size.patience)
    host, _, port = platform.stream_target.partition(":")
    jobs += [(f"grpc {case[0]}", _grpc((host, int(port)), case, findings)) for case in GRPC_CASES]
    play_all([(name, job) for name, job in jobs if findings.chosen(name)], findings)
    _still_serving(platform, builder, tenant, findings)


def play_all(jobs: list[Job], findings: Findings) -> None:
    """Most of them wait. One that breaks has not passed."""

    def play(name: str, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as problem:  # noqa: BLE001
            findings.add(PART, "a raw request could not be played", name, repr(problem))

    threads = [threading.Thread(target=play, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _Listener:
    def __init__(self, name: str, address: tuple[str, int], tenant: Tenant, findings: Findings) -> None:
        self.name, self.address, self.findings = name, address, findings
        self.account = tenant.accounts["paper"]
        self.key = keyed(tenant.api_keys["paper"])

    def jobs(self, slow: Iterable[Slow], patience: float) -> Iterator[Job]:
        for case in CASES:
            yield f"{self.name} {case.name}", self.raw(case)
        yield f"{self.name} pipelined", self.pipelined(PIPELINED)
        yield f"{self.name} half-closed", self.half_closed()
        for length in ANNOUNCED:
            yield f"{self.name} {length}", self.early_refusal(length)
        for drip in slow:
            yield f"{self.name} {drip.name}", self.slow(drip, patience)

    def raw(self, case: Case) -> Callable[[], None]:
        def attack() -> None:
            self.findings.count("raw requests")
            answers, ended = self._all_answers(case.data)
            self._judge(case, answers, ended)

        return attack

    def _all_answers(self, data: bytes) -> tuple[list[Answer], bool]:
        """Everything that is answered to the bytes, and whether the server ended the connection."""
        answers: list[Answer] = []
        with HttpConnection(self.address, ANSWER_S) as http:
            with suppress(OSError):
                http.send(data)
            http.timeout_after(ANSWER_S)
            while True:
                try:
                    answers.append(http.read())
                    http.timeout_after(1.0)  # what is answered a second time is answered soon
                except TimeoutError:
                    return answers, False
                except (NoAnswer, OSError):
                    return answers, True

    def _judge(self, case: Case, answers: list[Answer], ended: bool) -> None:
        statuses = [answer.status for answer in answers]
        name = f"{self.name} {case.name}"
        if len(answers) > case.most:
            self.findings.add(PART, "one request was answered as several", name, str(statuses))
        if not answers and not (ended and case.may_close):
            self.findings.add(PART, "a malformed request is not answered", name, "closed" if ended else "open")
        for answer in answers:
            if answer.status not in case.allowed:
                wanted = "/".join(map(str, sorted(case.allowed)))
                self.findings.add(PART, "a malformed request is taken", name, f"{answer.status} and not {wanted}")
            elif problem := wrong("GET", "/", len(case.data), answer):
                self.findings.add(PART, problem, name, answer.text[:200])

    def pipelined(self, count: int) -> Callable[[], None]:
        """As many answers as requests, in their order."""

        def attack() -> None:
            self.findings.count("raw requests", count)
            name = f"{self.name} pipelined"
            paths = [f"/v1/nowhere-{number}" for number in range(count)]
            with HttpConnection(self.address, ANSWER_S) as http:
                http.send(b"".join(written("GET", path, self.key) for path in paths))
                try:
                    instances = [http.read().json()["instance"] for _ in paths]
                except (NoAnswer, OSError, ValueError, KeyError) as problem:
                    self.findings.add(PART, "pipelined requests are not all answered", name, repr(problem))
                    return
            if instances != paths:
                self.findings.add(PART, "pipelined requests are answered out of order", name, str(instances[:5]))

        return attack

    def half_closed(self) -> Callable[[], None]:
        """Whoever says that nothing more will come is answered or let go, and not waited for."""

        def attack() -> None:
            for sent in (written("GET", "/health/live"), written("GET", "/health/live")[:-4], b""):
                self.findings.count("raw requests")
                with HttpConnection(self.address, ANSWER_S) as http:
                    http.open().sendall(sent)
                    http.open_socket().shutdown(socket.SHUT_WR)
                    try:
                        http.read()
                    except TimeoutError:
                        name = f"{self.name} half-closed"
                        self.findings.add(PART, "a half-closed connection is kept open", name, repr(sent))
                    except (NoAnswer, OSError):
                        pass

        return attack

    def early_refusal(self, length: int) -> Callable[[], None]:
        """A body that will be too long is refused when it is announced, not when it does not come."""

        def attack() -> None:
            self.findings.count("raw requests")
            path, name = f"/v1/accounts/{self.account}/intents", f"{self.name} {length}"
            head = (("Content-Type", "application/json"), ("Content-Length", str(length)))
            with HttpConnection(self.address, ANSWER_S) as http:
                http.send(written("POST", path, (*self.key, *head)))
                try:
                    answer = http.read()
                except (NoAnswer, OSError) as problem:
                    self.findings.add(PART, "a huge Content-Length waits instead of 413", name, repr(problem))
                    return
            allowed = {413, 400} if length > 10**17 else {413}
            allowed |= {404, 405} if self.name == "events" else set()
            if answer.status not in allowed:
                detail = f"{answer.status} {answer.text[:100]}"
                self.findings.add(PART, "a huge Content-Length is not 413", name, detail)

        return attack

    def slow(self, case: Slow, patience: float) -> Callable[[], None]:
        """One byte a second: the server must end it, however alive it looks."""

        def attack() -> None:
            self.findings.count("slow requests")
            began = time.monotonic()
            with HttpConnection(self.address, patience) as http:
                connection = http.open()
                connection.sendall(case.begin)
                connection.settimeout(1.0)
                while time.monotonic() - began < patience:
                    try:
                        connection.sendall(case.drop)
                        if _ended(connection):
                            return
                    except OSError:
                        return
            self.findings.add(PART, f"no time limit for {case.rule}", f"{self.name} {case.name}",
                              f"still open after {patience:g} s")  # fmt: skip

        return attack


def _ended(connection: socket.socket) -> bool:
    """Whether the server has answered or closed; waits a second for it."""
    try:
        connection.recv(65536)
    except TimeoutError:
        return False
    return True


def _grpc(address: tuple[str, int], case: tuple[str, bytes], findings: Findings) -> Callable[[], None]:
    """What is not HTTP/2 is not kept open: the connection ends, with or without a word."""

    def attack() -> None:
        name, data = case
        findings.count("raw requests")
        with socket.create_connection(address, timeout=ANSWER_S) as connection:
            with suppress(OSError):
                connection.sendall(data)
            try:
                while connection.recv(65536):
                    pass
            except TimeoutError:
                findings.add(
                    PART, "a connection that is not HTTP/2 stays open", f"grpc {name}", f"after {ANSWER_S:g} s"
                )
            except OSError:
                pass

    return attack


def _still_serving(platform: Platform, builder: Builder, tenant: Tenant, findings: Findings) -> None:
    """Afterwards everybody is served as before."""
    answer = builder.answer("GET", "/v1/accounts", bearer(tenant.tokens["admin"]))
    for address, path in ((platform.web, "/health/ready"), (platform.events, "/health/ready")):
        with HttpConnection(address) as http:
            status = http.exchange(written("GET", path)).status
        if status != 200:
            findings.add(PART, "a listener does not serve any more", None, f"{address}: {status}")
    if answer.status != 200:
        findings.add(PART, "a listener does not serve any more", None, f"GET /v1/accounts: {answer.text}")
