"""One connection to the API: every command is sent until it is answered, and every answer is written down."""

import itertools
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import urllib3
from fault_journal import Journals, digest, now, sealed

Json = dict[str, Any]
AGAIN = frozenset({"unavailable", "outcome_unknown", "idempotent_request_in_flight", "overloaded"})
PATIENCE_SECONDS = 180.0
CALL_SECONDS = 12.0


class GaveUp(Exception):
    """The platform did not answer for so long that something must be wrong with it."""


@dataclass
class Answer:
    """What came back of a request; status 0: nothing did."""

    status: int
    body: Json
    replayed: bool = False

    @property
    def code(self) -> str | None:
        return self.body.get("code") if self.status >= 400 else None


@dataclass
class Client:
    """What one thread of the load uses; not shared between threads."""

    base_url: str
    credential: Mapping[str, str]
    """The headers that say who calls."""
    journals: Journals
    dice: random.Random
    repeated: int = 0
    _pool: urllib3.PoolManager = field(init=False)

    def __post_init__(self) -> None:
        # Not requests: on a small machine it would take more of it than the platform does.
        self._pool = urllib3.PoolManager(timeout=CALL_SECONDS, retries=False)

    def twin(self, dice: random.Random | None = None) -> "Client":
        """The same caller on connections of its own."""
        return Client(self.base_url, self.credential, self.journals, dice or random.Random(self.dice.random()))

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One attempt."""
        try:
            got = self._pool.request(
                method,
                self.base_url + path,
                body=None if body is None else json.dumps(body).encode(),
                headers={**self.credential, "Content-Type": "application/json", **headers},
            )
        except urllib3.exceptions.HTTPError:
            return Answer(0, {})
        try:
            parsed = json.loads(got.data) if got.data else {}
        except ValueError:
            parsed = {"code": "not_json", "detail": got.data[:200].decode(errors="replace")}
        return Answer(got.status, parsed, got.headers.get("Idempotent-Replayed") == "true")

    def until_answered(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[Answer, float]:
        """Repeat what can be repeated; the answer, and when the last attempt was sent. Attempts in between are lost."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        for attempt in itertools.count():
            if time.monotonic() > deadline:
                break
            sent = now()
            answer = self.call(method, path, body, **headers)
            if answer.status and answer.code not in AGAIN and answer.status not in (429, 502, 504):
                return answer, sent
            self._rest(attempt)
        raise GaveUp(
            f"{method} {path} was not answered within {PATIENCE_SECONDS:g} s; last {answer.status} {answer.code}"
        )

    def _rest(self, attempt: int) -> None:
        """Longer each time, as a good client does: whoever is starting again needs the machine."""
        self.repeated += 1
        time.sleep(min(1.0, 0.05 * 2**attempt) * (0.5 + self.dice.random()))

    def command(self, account_id: str, kind: str, payload: Json, key: str | None = None) -> Json | None:
        """The action, or None if it was refused."""
        key = key or uuid4().hex
        body = {"command": {"type": kind, "payload": payload}}
        path = f"/v1/accounts/{account_id}/intents"
        answer, _sent = self._sent(path, account_id, kind, body, key)
        return answer.body if answer.status in (200, 201) else None

    def batch(self, account_id: str, commands: Sequence[tuple[str, Json]], *, atomic: bool) -> list[Json]:
        """The actions of those commands that were accepted."""
        body = {"commands": [{"type": kind, "payload": payload} for kind, payload in commands], "atomic": atomic}
        path, key = f"/v1/accounts/{account_id}/intents/batch", uuid4().hex
        deadline = time.monotonic() + PATIENCE_SECONDS
        for attempt in itertools.count():
            if time.monotonic() > deadline:
                break
            answer, sent = self._sent(path, account_id, "BATCH", body, key)
            results = answer.body.get("results", [])
            for place, result in enumerate(results):
                self._note_place(result, account_id, commands[place], f"{key}/{place}", sent, atomic)
            if not any(result["status"] in (503, 409) and _again(result) for result in results):
                return [result["action"] for result in results if "action" in result]
            self._rest(attempt)
        raise GaveUp(f"a batch of {account_id} was not answered")

    def dry_run(self, account_id: str, kind: str, payload: Json) -> Answer:
        """Decides and writes nothing, so that it need not be answered."""
        body = {"command": {"type": kind, "payload": payload}}
        sent = now()
        answer = self.call("POST", f"/v1/accounts/{account_id}/intents?dry_run=true", body)
        self._note(answer, account_id, "DRY_RUN", None, sent)
        return answer

    def _sent(self, path: str, account_id: str, kind: str, body: Any, key: str) -> tuple[Answer, float]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        for attempt in itertools.count():
            if time.monotonic() > deadline:
                break
            sent = now()
            answer = self.call("POST", path, body, **{"Idempotency-Key": key})
            self._note(answer, account_id, kind, key, sent, payload=body.get("command", {}).get("payload"))
            if answer.status and answer.code not in AGAIN and answer.status not in (429, 502, 504):
                return answer, sent
            self._rest(attempt)
        raise GaveUp(f"{kind} of {account_id} was not answered within {PATIENCE_SECONDS:g} s, key {key}")

    def _note(
        self, answer: Answer, account_id: str, kind: str, key: str | None, sent: float, payload: Json | None = None
    ) -> None:
        record: Json = {"account": account_id, "type": kind, "key": key, "sent": sent, "answered": now()}
        record |= {"status": answer.status}
        if answer.status in (200, 201) and kind not in ("DRY_RUN", "BATCH"):
            record |= _of_action(answer.body) | {"replayed": answer.replayed}
        elif answer.status >= 400:
            record |= _of_problem(answer.body)
            record["intent"] = (payload or {}).get("ref_intent_id")
        if payload and "symbol" in payload:
            record["symbol"] = payload["symbol"]
        self.journals.answers.write(record)

    def _note_place(
        self, result: Json, account_id: str, command: tuple[str, Json], key: str, sent: float, atomic: bool
    ) -> None:
        kind, payload = command
        record: Json = {"account": account_id, "type": kind, "key": key, "sent": sent, "answered": now()}
        record |= {"status": result["status"], "batch": "atomic" if atomic else "each"}
        if "action" in result:
            record |= _of_action(result["action"])
        else:
            record |= _of_problem(result.get("problem", {})) | {"intent": payload.get("ref_intent_id")}
        self.journals.answers.write(record)


def _again(result: Json) -> bool:
    return result.get("problem", {}).get("code") in AGAIN


def _of_action(action: Mapping[str, Any]) -> Json:
    return {
        "action": action.get("id"),
        "intent": action.get("intent_id"),
        "sequence": action.get("sequence"),
        "sealed": sealed(action),
        "body": digest(action),
    }


def _of_problem(problem: Mapping[str, Any]) -> Json:
    reasons = [reason.get("code") for reason in problem.get("reasons", ())]
    return {"code": problem.get("code"), "reasons": reasons, "detail": str(problem.get("detail", ""))[:300]}
