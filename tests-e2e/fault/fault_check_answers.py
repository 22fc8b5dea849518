"""Every answer a client was given against the log and against the controls of that moment."""

import hashlib
from collections import defaultdict

from fault_contract import TERMINAL
from fault_evidence import Evidence
from fault_findings import Findings
from fault_journal import sealed
from fault_records import AccountLog, Json, Story

SETTLING_SECONDS = 25.0
"""How long a transaction can have been on its way when everything was frozen."""
LONGEST_BATCH = 10
WAITED_SECONDS = 5.0
"""So long the contract lets a request wait for a thread; less is no reason to call them too many."""
REFUSED_BY = {
    "SYMBOL_DISABLED": ("symbol_manual", "manually_disabled", True),
    "TRADING_HALTED": ("switch", "trading_state", "HALTED"),
    "TRADING_REDUCING": ("switch", "trading_state", "REDUCING"),
    "QUANTITY_ABOVE_LIMIT": ("symbol_limits", "max_quantity", "2"),
    "ORDER_RATE_ABOVE_LIMIT": ("symbol_limits", "max_quantity", "2"),
}


_Key = tuple[str, str | None, str | None]


class Periods:
    """When a control had which value: from the moment it may have begun to the moment it must have ended."""

    def __init__(self, changes: list[Json]) -> None:
        self._changes: dict[_Key, list[Json]] = defaultdict(list)
        for change in changes:
            if change["status"] < 400 or _removed_before(change):
                self._changes[change["control"], change["account"], change["symbol"]].append(change)

    def of(
        self, control: str, account: str, symbol: str | None, name: str, value: object
    ) -> list[tuple[Json, Json | None]]:
        """Pairs of the change that made it so and the one that ended it."""
        if control == "switch":
            keys: list[_Key] = [("account_switch", account, None), ("organization_switch", None, None)]
        else:
            keys = [(control, account, symbol)]
        found = []
        for key in keys:
            changes = self._changes.get(key, [])
            for place, change in enumerate(changes):
                if (change["value"] or {}).get(name) == value:
                    found.append((change, next((after for after in changes[place + 1 :]), None)))
        return found


def _removed_before(change: Json) -> bool:
    """A DELETE whose answer was lost, and whose repeat found nothing left to remove."""
    return bool(change["value"] is None and change["status"] == 404 and change["repeated"])


def check_answers(evidence: Evidence, log: AccountLog, records: list[Json], findings: Findings) -> None:
    answers = evidence.answers[log.account]
    listed = {record["id"]: sealed(record) for record in records}
    logged = {entry.payload["id"]: entry.sequence for entry in log.entries if entry.type == "INTENT_ACTION"}
    keys: dict[str, list[Json]] = defaultdict(list)
    periods = Periods(evidence.controls)
    for answer in answers:
        _check_status(evidence, log, answer, periods, findings)
        if answer.get("action") is None:
            continue
        findings.expect(logged.get(answer["action"]) == answer["sequence"], "answered, but not in the log", answer)
        if records:
            same = listed.get(answer["action"]) == answer["sealed"]
            findings.expect(same, "an answer is not the record of the list", answer)
        keys[answer["key"]].append(answer)
    for key, given in keys.items():
        _check_replays(log, key, given, findings)
    _check_unanswered(evidence, log, answers, findings)
    _check_obeyed(log, answers, periods, findings)


def _check_replays(log: AccountLog, key: str, given: list[Json], findings: Findings) -> None:
    bodies, statuses = {answer["body"] for answer in given}, {answer["status"] for answer in given}
    findings.expect(len(bodies) == 1, "one idempotency key, two answers", (key, given))
    findings.expect(len(statuses) == 1, "one idempotency key, two statuses", (key, statuses))
    if "batch" not in given[0]:
        first = [answer for answer in given if not answer["replayed"]]
        findings.expect(len(first) <= 1, "one idempotency key, done twice", (key, given))


def _check_unanswered(evidence: Evidence, log: AccountLog, answers: list[Json], findings: Findings) -> None:
    """Nothing is in the log that was never answered, unless the answer to its very key was lost on the way.

    Every command is repeated until it is answered. If a repeat is refused meanwhile (a HALT, a deleted account), the
    attempt whose answer was lost may still have been done.
    """
    answered = {answer.get("action") for answer in answers}
    lost = {name for answer in answers if may_be_done(answer) for name in _stored_keys(answer)}
    keys = evidence.rows("SELECT action_id, key FROM intents.idempotency WHERE account_id = %s", log.account)
    answered |= {str(row["action_id"]) for row in keys if row["key"] in lost}
    for entry in log.entries:
        if entry.type != "INTENT_ACTION" or entry.payload["actor"]["type"] == "system":
            continue
        if entry.payload["id"] not in answered:
            findings.about(log.account, entry.payload["intent_id"]).add("in the log, but never answered", entry)


def may_be_done(answer: Json) -> bool:
    """Whether it was not answered what became of the attempt; an overloaded platform says that nothing was written."""
    return answer["status"] == 0 or (answer["status"] == 503 and answer.get("code") != "overloaded")


def _stored_keys(answer: Json) -> list[str]:
    """What the platform may have kept an attempt under: the key itself, or one for each place of a batch."""
    key = str(answer["key"])
    digest = hashlib.sha256(key.encode()).hexdigest()
    return [key] if answer["type"] != "BATCH" else [f"batch\n{place}\n{digest}" for place in range(LONGEST_BATCH)]


def _check_status(evidence: Evidence, log: AccountLog, answer: Json, periods: Periods, findings: Findings) -> None:
    status, code = answer["status"], answer.get("code")
    story = log.stories.get(str(answer.get("intent")))
    good = True
    if answer["type"] == "READ":
        good = (status == 200 and answer["found"]) or _gone(evidence, answer)
    elif status in (0, 200, 201) or (status == 503 and code in ("unavailable", "outcome_unknown")):
        pass
    elif status == 404:
        good = _gone(evidence, answer)
    elif code == "intent_terminal":
        good = story is not None and _had_ended(story, answer)
    elif code == "intent_busy":
        good = answer["type"] == "REPLACE" and story is not None and _was_busy(story, answer)
    elif code == "control_rejected":
        good = _was_refused(answer, periods)
    elif code == "overloaded":
        good = status == 503 and answer["type"] != "CANCEL"
    elif code == "too_many_requests":
        good = answer["answered"] - answer["sent"] >= WAITED_SECONDS
    elif code == "invalid":
        good = answer["type"] == "REPLACE"
    else:
        batch = answer.get("batch") == "atomic" and status == 424
        good = batch or code in ("idempotent_request_in_flight", "batch_rejected")
    if not good:
        findings.about(log.account, answer.get("intent")).add(f"answered {status} {code} to {answer['type']}", answer)


def _gone(evidence: Evidence, answer: Json) -> bool:
    deleted = evidence.deleted.get(answer["account"])
    return deleted is not None and answer.get("answered", answer["sent"]) >= deleted["begun"]


def _had_ended(story: Story, answer: Json) -> bool:
    ends = [entry.written_at for entry in story.entries if entry.to_status in TERMINAL and entry.written_at]
    return bool(ends) and ends[0].timestamp() <= answer["answered"]


def _was_busy(story: Story, answer: Json) -> bool:
    """A REPLACE or CANCEL was pending: appended before the answer, settled not long before the question."""
    for number, entry in enumerate(story.entries):
        if entry.to_status not in ("PENDING_REPLACE", "PENDING_CANCEL") or entry.written_at is None:
            continue
        over = next((later.written_at for later in story.entries[number + 1 :] if later.to_status), None)
        ended = float("inf") if over is None else over.timestamp() + SETTLING_SECONDS
        if entry.written_at.timestamp() <= answer["answered"] and ended >= answer["sent"]:
            return True
    return False


def _was_refused(answer: Json, periods: Periods) -> bool:
    """At least one reason is one that the controls gave at that moment, and none is made up."""
    for code in answer.get("reasons", ()):
        known = REFUSED_BY.get(code)
        if known is None:
            return False
        symbols = [answer.get("symbol")] if answer.get("symbol") else ["QUICK", "SIM.TRICKLE20", "SIM.OPEN"]
        control, name, value = known
        spans = [span for symbol in symbols for span in periods.of(control, answer["account"], symbol, name, value)]
        if not any(_overlaps(span, answer["sent"], answer["answered"]) for span in spans):
            return False
    return True


def _overlaps(span: tuple[Json, Json | None], sent: float, answered: float) -> bool:
    begun, ended = span[0]["begun"], span[1]["answered"] if span[1] else float("inf")
    return bool(begun <= answered and sent <= ended)


def _check_obeyed(log: AccountLog, answers: list[Json], periods: Periods, findings: Findings) -> None:
    """What was submitted after a control had answered, and answered before it was lifted, obeys it."""
    first_sent: dict[str, float] = {}
    for answer in answers:
        key = str(answer.get("key"))
        first_sent[key] = min(first_sent.get(key, answer["sent"]), answer["sent"])
    actions = {entry.payload["id"]: entry for entry in log.entries if entry.type == "INTENT_ACTION"}
    for answer in answers:
        entry = actions.get(str(answer.get("action")))
        if entry is None or answer["type"] == "CANCEL" or answer.get("replayed"):
            continue
        for code, (control, name, value) in REFUSED_BY.items():
            if code in ("TRADING_REDUCING", "ORDER_RATE_ABOVE_LIMIT"):
                continue  # these depend on what else the account does
            if code == "QUANTITY_ABOVE_LIMIT" and not above_limit(entry.payload):
                continue
            for begun, ended in periods.of(control, log.account, entry.payload["symbol"], name, value):
                until = ended["begun"] if ended else float("inf")
                inside = begun["answered"] < first_sent[str(answer["key"])] and answer["answered"] < until
                if inside:
                    findings.about(log.account, answer["intent"]).add(f"accepted against {code}", f"{entry}, {begun}")


def above_limit(action: Json) -> bool:
    [terms] = action["spec"].values()
    return float(terms["quantity"]) > 2
