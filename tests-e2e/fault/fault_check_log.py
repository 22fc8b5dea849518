"""The log itself: without gaps, chained, continuous per intent, and the same through every door of the API."""

import hashlib
import json
import re
from collections import Counter
from datetime import UTC
from functools import partial
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from fault_check_answers import may_be_done
from fault_evidence import Evidence, doubled
from fault_findings import Findings, Lazily
from fault_records import AccountLog, Entry, Json, Story

GENESIS = "00" * 32
_LAST_HASH = "SELECT encode(last_hash, 'hex') AS last_hash FROM intents.account_head WHERE account_id = %s"
_SIGNED_HEAD = "SELECT * FROM intents.signed_head JOIN intents.log_signing_key USING (key_id) WHERE account_id = %s"
LIFECYCLE = Path(__file__).parents[2] / "services" / "intents" / "LIFECYCLE.md"


def check_log(evidence: Evidence, log: AccountLog, findings: Findings) -> list[Json]:
    """Returns the account's action records as the API lists them; none for a deleted account, which has no doors."""
    sequences = [entry.sequence for entry in log.entries]
    expected = list(range(1, log.head + 1))
    findings.expect(sequences == expected, "the sequence has gaps", _gap(sequences, log.head))
    for event_id in doubled(entry.event_id for entry in log.entries if entry.type not in ("CONTROL", "ACCOUNT")):
        findings.add("an event id is used twice", event_id)
    for story in log.stories.values():
        _check_continuity(story, findings.about(log.account, story.id))
    if log.deleted:
        return []
    records = list(evidence.pages(f"/v1/accounts/{log.account}/intents"))
    _check_list(log, records, findings)
    _check_chain(records, findings)
    [head] = evidence.rows(_LAST_HASH, log.account)
    _check_signed_head(head["last_hash"], evidence.rows(_SIGNED_HEAD, log.account), findings)
    _check_reads(evidence, log, records, findings)
    _check_statistics(evidence, log, findings)
    return records


def _gap(sequences: list[int], head: int) -> str:
    missing = sorted(set(range(1, head + 1)) - set(sequences))
    return f"head {head}, {len(sequences)} entries, missing {missing[:5]}, double {doubled(sequences)[:5]}"


def edges() -> set[tuple[str, str]]:
    """The documented transitions. What leads to ACCEPTED leads to PARTIALLY_FILLED when something is filled."""
    found = set(re.findall(r"^\s+(\w+) --> (\w+): ", LIFECYCLE.read_text(), re.MULTILINE))
    return found | {(before, "PARTIALLY_FILLED") for before, after in found if after == "ACCEPTED"}


EDGES = edges()


def _check_continuity(story: Story, findings: Findings) -> None:
    status, filled = None, story.row["filled_quantity"] * 0
    for entry in story.entries:
        if entry.to_status is None:
            continue
        here = Lazily(partial(_placed, entry, status, story))
        if status is None:
            good = entry.type == "INTENT_ACTION" and entry.payload["command"]["type"] == "CREATE"
            findings.expect(good and entry.to_status == "PENDING", "an intent does not begin with its CREATE", here)
        else:
            findings.expect(entry.from_status == status, "a status does not follow from the one before", here)
            known = entry.from_status == entry.to_status or (entry.from_status, entry.to_status) in EDGES
            findings.expect(known, "a transition that is not in the table", here)
        status = entry.to_status
        findings.expect(entry.payload["status"] == status, "an event shows another status than it made", here)
        if entry.type == "BROKER_ORDER":
            now = type(filled)(entry.payload["filled_quantity"])
            findings.expect(now >= filled, "a filled quantity shrinks", here)
            filled = now
    findings.expect(
        status == story.row["status"], "the intent's status is not what its log says", Lazily(story.summary)
    )


def _placed(entry: Entry, status: str | None, story: Story) -> str:
    return f"{entry} after {status} | {story.summary()}"


def _check_list(log: AccountLog, records: list[Json], findings: Findings) -> None:
    listed = [(record["sequence"], record["id"]) for record in records]
    logged = [(entry.sequence, entry.payload["id"]) for entry in log.entries if entry.type == "INTENT_ACTION"]
    findings.expect(listed == logged, "the list differs from the log", f"{len(listed)} and {len(logged)} actions")
    for record in records:
        story, state = log.stories[record["intent_id"]], record["state"]
        shown = (state["status"], state["reason_code"], state["outcome"], state["filled_quantity"])
        row = story.row
        known = (row["status"], row["reason_code"], row["outcome"], format(row["filled_quantity"], "f"))
        findings.about(log.account, story.id).expect(
            shown == known, "a list shows another state than the intent has", f"{shown} and {known}"
        )


def _check_chain(records: list[Json], findings: Findings) -> None:
    """The recipe of docs/statement.md, by hand. Between two actions there may be events; `verify` follows those too."""
    last: Json = {"sequence": 0, "hash": GENESIS}
    for record in records:
        kept = {
            name: value for name, value in record.items() if name not in ("sequence", "state", "previous_hash", "hash")
        }
        content = hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).digest()
        place = record["sequence"].to_bytes(8, "big")
        link = hashlib.sha256(bytes.fromhex(record["previous_hash"]) + place + content).hexdigest()
        follows = record["sequence"] != last["sequence"] + 1 or record["previous_hash"] == last["hash"]
        findings.expect(follows, "a link of the chain does not hold", record["id"])
        findings.expect(record["hash"] == link, "a hash is not that of its record", record["id"])
        last = record


def _check_signed_head(last_hash: str, signed: list[Json], findings: Findings) -> None:
    """Once everything has settled the signer attests the last entry of every log."""
    findings.expect(len(signed) == 1, "the log of an account is not signed", len(signed))
    for head in signed:
        moment = head["signed_at"].astimezone(UTC).isoformat(timespec="microseconds")
        parts = (head["account_id"], head["epoch"], head["sequence"], head["hash"].hex(), moment)
        message = "\n".join(("tip signed head 1", *map(str, parts))).encode()
        findings.expect(head["hash"].hex() == last_hash, "the signed head is not the last entry", head)
        try:
            Ed25519PublicKey.from_public_bytes(bytes(head["public_key"])).verify(bytes(head["signature"]), message)
        except InvalidSignature:
            findings.add("the signature of a head does not hold", head)


def _check_reads(evidence: Evidence, log: AccountLog, records: list[Json], findings: Findings) -> None:
    """verify agrees; latest and history of a sample are the list's."""
    cursor, checked = "", 0
    while cursor is not None:
        answer = evidence.get(
            f"/v1/accounts/{log.account}/intents/verify" + (f"?next_cursor={cursor}" if cursor else "")
        )
        body = answer.json()
        findings.expect(body.get("valid") is True, "verify says that the chain is broken", body)
        checked += body.get("checked", 0)
        cursor = body.get("next_cursor")
    findings.expect(checked == log.head, "verify has checked another number of entries", checked)
    for story in list(log.stories.values())[:: max(1, len(log.stories) // 20)]:
        own = [record for record in records if record["intent_id"] == story.id]
        base = f"/v1/accounts/{log.account}/intents/{story.id}"
        latest, history = evidence.get(base).json(), list(evidence.pages(base + "/actions"))
        findings.expect(latest == own[-1], "the latest action is not the list's last", latest)
        findings.expect(history == own, "the history differs from the list", len(history))


def _check_statistics(evidence: Evidence, log: AccountLog, findings: Findings) -> None:
    statistics = evidence.get(f"/v1/accounts/{log.account}/intents/stats?time_window=all").json()
    actions = [entry.payload for entry in log.entries if entry.type == "INTENT_ACTION"]
    types = Counter(action["command"]["type"] for action in actions)
    statuses = Counter(story.row["status"] for story in log.stories.values())
    symbols = Counter(action["symbol"] for action in actions)
    ranked = sorted(symbols.items(), key=lambda item: (-item[1], item[0]))[:20]
    recount = {
        "total_actions": len(actions),
        "total_intents": types["CREATE"],
        "by_type": {name: types[name] for name in statistics["by_type"]},
        "by_status": {name: statuses[name] for name in statistics["by_status"]},
        "by_symbol": [{"symbol": symbol, "total_actions": count} for symbol, count in ranked],
    }
    for name, counted in recount.items():
        findings.expect(
            statistics[name] == counted,
            "statistics differ from a recount",
            f"{name}: {statistics[name]}, not {counted}",
        )
    least, most = _refusals(evidence, log.account)
    refusals = statistics["refusals"]
    within = all(least[code] <= refusals.get(code, 0) <= most[code] for code in set(refusals) | set(least))
    findings.expect(within, "statistics differ from a recount", f"refusals {refusals}, answered {dict(least)}")


def _refusals(evidence: Evidence, account: str) -> tuple[Counter[str], Counter[str]]:
    """Those that were answered, and with those whose answer may have been lost or that only rehearsed."""
    least: Counter[str] = Counter()
    most: Counter[str] = Counter()
    unsure = 0
    for answer in evidence.answers[account]:
        unsure += may_be_done(answer) or answer["type"] == "DRY_RUN" or "batch" in answer
        if answer.get("code") == "control_rejected" and answer["type"] != "DRY_RUN" and "batch" not in answer:
            least.update(set(answer["reasons"]))  # the account's switch and the organization's may both say the same
            most.update(answer["reasons"])
    most = Counter({code: count + 8 * unsure for code, count in most.items()})
    for code in (
        "SYMBOL_DISABLED",
        "TRADING_HALTED",
        "TRADING_REDUCING",
        "QUANTITY_ABOVE_LIMIT",
        "ORDER_RATE_ABOVE_LIMIT",
        "NOTIONAL_ABOVE_LIMIT",
    ):
        most[code] = max(most[code], 8 * unsure)
    return least, most
