"""Every subscriber's events against the log, and every outbox against the order in which its rows were made."""

from collections import defaultdict
from contextlib import suppress

from fault_evidence import Evidence
from fault_findings import Findings, Lazily
from fault_records import AccountLog, Entry, Json
from fault_subscribers import Subscriber

from chassis.services import WEB_SERVICES


def check_streams(log: AccountLog, subscribers: list[Subscriber], findings: Findings) -> int:
    """Without gap, without duplicate, equal to the log, to the end; how many events that were."""
    logged = {entry.sequence: entry for entry in log.entries}
    digests: dict[int, str] = {}
    epochs: set[str] = set()
    count = 0
    for subscriber in subscribers:
        who = f"{subscriber.transport}, {subscriber.streams} streams"
        position = None
        for line in subscriber.journal.read():
            if "begins" in line:
                position = line["begins"]
            elif "mark" in line:
                findings.add("a heartbeat is not where its stream is", f"{who}: {line}")
            else:
                count += 1
                _check_event(line, position, who, logged, digests, findings)
                position = line["n"]
                epochs |= {line["epoch"]} if line.get("epoch") else set()
        _check_last(log, subscriber, position, who, findings)
    findings.expect(len(epochs) <= 1, "the log's epoch has changed without a restore", epochs)
    return count


def _check_event(
    line: Json, position: int | None, who: str, logged: dict[int, Entry], digests: dict[int, str], findings: Findings
) -> None:
    number = line["n"]
    follows = position is None or number == position + 1
    findings.expect(follows, "a stream has a gap or a duplicate", f"{who}: {number} after {position}")
    entry = logged.get(number)
    same = entry is not None and (entry.event_id, entry.type) == (line["id"], line["type"])
    findings.expect(same, "a stream differs from the log", Lazily(lambda: f"{who}: {line} and {entry}"))
    if entry is not None and entry.type == "BROKER_ORDER":
        good = line["status"] == entry.payload["status"]
        findings.expect(good, "a stream differs from the log", Lazily(lambda: f"{who}: {line} and {entry}"))
    good = digests.setdefault(number, line["digest"]) == line["digest"]
    findings.expect(good, "two subscribers received different events", f"{who}: {line}")


def _check_last(log: AccountLog, subscriber: Subscriber, position: int | None, who: str, findings: Findings) -> None:
    if subscriber.ended is not None:
        gone = log.deleted and ("NOT_FOUND" in subscriber.ended or subscriber.ended.startswith("404"))
        findings.expect(gone, "a stream ended for good", f"{who}: {subscriber.ended}")
    elif log.deleted:
        findings.add("a stream of a deleted account goes on", who)
    else:
        findings.expect(
            position == log.head,
            "a stream did not come to the end of the log",
            f"{who}: {position} of {log.head}, lost {subscriber.lost[-3:]}",
        )


def check_logged_once(evidence: Evidence, log: AccountLog, findings: Findings) -> None:
    """Each event of controls and accounts is in the log of the account once."""
    seen: dict[tuple[object, ...], int] = defaultdict(int)
    for entry in log.entries:
        if entry.type == "CONTROL":
            payload = entry.payload
            seen[payload.get("control"), payload.get("symbol"), payload.get("version"), payload.get("deleted")] += 1
    for what, count in seen.items():
        findings.expect(count == 1, "a control's change is logged twice", f"{what} {count} times")
    if log.deleted:
        return
    for change in evidence.controls:
        if change["account"] == log.account and change["version"] is not None:
            what = (change["control"], change["symbol"], change["version"], False)
            findings.expect(seen[what] == 1, "a control's change is not logged", change)


def check_outboxes(evidence: Evidence, findings: Findings) -> None:
    for schema in WEB_SERVICES:
        rows = evidence.rows(
            f"SELECT id, ordering_key, status, position, event_type, last_error FROM {schema}.outbox ORDER BY id"
        )
        for row in rows:
            if row["status"] != "completed":
                findings.add("an outbox row is not delivered", f"{schema}: {row}")
        positions = sorted(row["position"] for row in rows if row["position"] is not None)
        whole = positions == list(range(1, len(positions) + 1))
        findings.expect(whole, "a feed has gaps", f"{schema}: {len(positions)} positions")
        last: dict[str, tuple[int, int]] = {}
        for row in rows:
            if row["ordering_key"] is None or row["position"] is None:
                continue
            with suppress(KeyError):
                before = last[row["ordering_key"]]
                findings.expect(
                    row["position"] > before[1],
                    "a feed inverts two events of one key",
                    f"{schema} {row['ordering_key']}: rows {before[0]}, {row['id']} at {before[1]}, {row['position']}",
                )
            last[row["ordering_key"]] = (row["id"], row["position"])
