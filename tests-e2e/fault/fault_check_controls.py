"""Controls at sending: what leaves obeys them, and what was denied or rejected because of one was so with reason."""

from datetime import datetime
from functools import cache

from fault_check_answers import REFUSED_BY, Periods, above_limit
from fault_contract import client_order_id
from fault_evidence import Evidence
from fault_findings import Findings
from fault_records import AccountLog, Entry, Json, Story

CONTROL_SECONDS = 2.0
MEASURING_SECONDS = 0.5
"""What the run itself may need between the arrival of a request and the note of it."""
OBEYED = ("TRADING_HALTED", "SYMBOL_DISABLED", "QUANTITY_ABOVE_LIMIT")
"""Those whose answer alone says what may leave; the others depend on what else the account does."""
OF_NO_CONTROL = frozenset({"ACCOUNT_NOT_FOUND"})
Owners = dict[str, tuple[str, Json]]
"""The account and the action of each client order id."""


def check_sent(evidence: Evidence, owners: Owners, findings: Findings) -> None:
    """Nothing leaves later than two seconds after a control against it was answered."""
    periods = Periods(evidence.controls)
    spans = cache(lambda code, account, symbol: _spans(periods, code, account, symbol))
    for request in evidence.left:
        account, action = owners.get(str(request["client_order_id"]), ("", {}))
        if not account or request["method"] == "DELETE":
            continue
        for code in OBEYED:
            if _concerns(code, action):
                _check_left(code, spans(code, account, action["symbol"]), request, findings.about(account))
        deleted = evidence.deleted.get(account)
        gone = deleted is not None and request["received"] - deleted["answered"] > CONTROL_SECONDS + MEASURING_SECONDS
        findings.about(account).expect(not gone, "an order left for a deleted account", request)


def _spans(periods: Periods, code: str, account: str, symbol: str) -> list[tuple[Json, Json | None]]:
    control, name, value = REFUSED_BY[code]
    return periods.of(control, account, symbol, name, value)


def _concerns(code: str, action: Json) -> bool:
    """What the platform reduces by itself only a HALT stops."""
    if code == "TRADING_HALTED":
        return True
    is_own = action["actor"]["type"] == "system"
    return not is_own and (code != "QUANTITY_ABOVE_LIMIT" or above_limit(action))


def _check_left(code: str, spans: list[tuple[Json, Json | None]], request: Json, findings: Findings) -> None:
    for begun, ended in spans:
        until = ended["begun"] if ended else float("inf")
        late = request["received"] - begun["answered"]
        findings.expect(
            not (late > CONTROL_SECONDS + MEASURING_SECONDS and request["received"] < until),
            f"an order left against {code}",
            f"{request['method']} {request['client_order_id']} {late:.2f} s after {_moment(begun['answered'])}",
        )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S.%f")


def by_client_order_id(log: AccountLog) -> Owners:
    actions = (entry.payload for entry in log.entries if entry.type == "INTENT_ACTION")
    return {client_order_id(action["id"]): (log.account, action) for action in actions}


def check_refused_at_sending(evidence: Evidence, story: Story, findings: Findings) -> None:
    """A DENIED has the code of a control that held between the submit and the end; a rejected REPLACE likewise."""
    periods = Periods(evidence.controls)
    for entry in story.events:
        code = entry.payload.get("reason_code")
        is_denial = entry.to_status == "DENIED" and entry.from_status != "DENIED"
        if is_denial and code not in OF_NO_CONTROL and code not in REFUSED_BY:
            findings.add("DENIED for a reason that no control has", entry)
        if code in REFUSED_BY:
            spans = _spans(periods, code, story.account, story.row["symbol"])
            held = any(_held_before(span, story, entry) for span in spans)
            findings.expect(held, f"{code}, but no such control held", entry)


def _held_before(span: tuple[Json, Json | None], story: Story, entry: Entry) -> bool:
    submitted, written = story.entries[0].written_at, entry.written_at
    if submitted is None or written is None:
        return True
    ended = span[1]["answered"] if span[1] else float("inf")
    return bool(span[0]["begun"] <= written.timestamp() and submitted.timestamp() <= ended)
