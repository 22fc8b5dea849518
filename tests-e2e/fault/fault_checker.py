"""The judge: clients, log, streams, outboxes and the broker's own storage must agree. Nothing is excused.

It knows the contract and the documents, and nothing of the code it judges.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fault_check_answers import check_answers
from fault_check_controls import Owners, by_client_order_id, check_sent
from fault_check_log import check_log
from fault_check_orders import check_nobody_elses, check_orders, check_positions, totals
from fault_check_streams import check_logged_once, check_outboxes, check_streams
from fault_evidence import Evidence
from fault_findings import Findings
from fault_subscribers import Subscriber

SHOWN = 3
GOOD = "nothing lost, doubled, out of order or untrue"


@dataclass
class Verdict:
    facts: dict[str, Any] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    @property
    def good(self) -> bool:
        return not self.findings.found

    def write(self, path: Path) -> None:
        path.write_text("".join(f"{finding.rule}\t{finding}\n" for finding in self.findings.found))

    def __str__(self) -> str:
        lines = [f"  {name}: {value}" for name, value in self.facts.items()]
        for rule, found in self.findings.by_rule().items():
            lines.append(f"  FINDING {rule}: {len(found)}")
            lines += [f"      {str(finding)[:1500]}" for finding in found[:SHOWN]]
        return "\n".join([*lines, "  verdict: " + (GOOD if self.good else f"{len(self.findings.found)} FINDINGS")])


def judge(evidence: Evidence, subscribers: list[Subscriber]) -> Verdict:
    verdict = Verdict()
    findings = verdict.findings
    counted: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    owners: Owners = {}
    accounts = evidence.accounts()
    for account in accounts:
        log = evidence.log_of(account)
        here = findings.about(account)
        records = check_log(evidence, log, here)
        check_answers(evidence, log, records, here)
        check_orders(evidence, log, here)
        check_positions(evidence, log, here)
        check_logged_once(evidence, log, here)
        mine = [subscriber for subscriber in subscribers if subscriber.account_id == account]
        counted["events streamed"] += check_streams(log, mine, here)
        counted.update(totals(log))
        statuses.update(story.row["status"] for story in log.stories.values())
        owners |= by_client_order_id(log)
    check_nobody_elses(evidence, set(owners), findings)
    check_sent(evidence, owners, findings)
    check_outboxes(evidence, findings)
    for account, answers in evidence.answers.items():
        if account not in accounts:
            lost = [answer for answer in answers if answer.get("action")]
            findings.about(account).expect(not lost, "answered, but not in the log", lost[:1])
    counted["answers"] = sum(len(answers) for answers in evidence.answers.values())
    verdict.facts |= {**counted, "statuses": dict(statuses)}
    return verdict
