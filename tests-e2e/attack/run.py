"""Attack a whole platform as another tenant, and as nobody at all, would; then say what gave way.

    python tests-e2e/attack/run.py --size ten-minutes
    python tests-e2e/attack/run.py --part matrix --seed 7

Exit code 0 means that nothing was found, 1 that something was, 2 that no case has the name given. Whatever is found is
printed with the command that reproduces it. Findings and report are written after every part, so that none is lost.
"""

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import attack_fairness
import attack_fuzz
import attack_matrix
import attack_secrets
import attack_sockets
import attack_streams
import attack_tokens
from attack_findings import Findings
from attack_options import PARTS, Size, arguments, command, expected_s
from attack_platform import SELDOM, UNLIMITED, Platform, platform, running_platform
from attack_progress import Progress, duration, say
from attack_report import paste, section, summary
from attack_tenants import Builder

AS_SHIPPED = ("streams", "fairness")
"""Parts that attack the limits themselves: where they measure, the platform has its limits as it is shipped."""
BROKE = "the attack itself broke"
MOST_CONNECTIONS = 0.75
Part = Callable[[Platform, Builder, Size, int, Findings, Progress], None]
ATTACKS: dict[str, Part] = {
    "matrix": attack_matrix.run,
    "fuzz": attack_fuzz.run,
    "tokens": attack_tokens.run,
    "sockets": attack_sockets.run,
    "streams": attack_streams.run,
    "fairness": attack_fairness.run,
    "secrets": attack_secrets.run,
}


def main() -> int:
    given, size = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the platform is stopped, too
    chosen = [part for part in PARTS if part in (given.part or PARTS)]
    limited = [part for part in chosen if part in AS_SHIPPED and size.samples]
    unlimited = [part for part in chosen if part not in limited]
    progress = Progress(expected_s(given.size, [*limited, *unlimited]))
    run = Run(given, size, progress, Findings(only=given.case))
    say(f"make attack: {command(given, size)}; about {duration(sum(progress.expected_s.values()))}")
    # What compares latencies comes first: only the start of a long run has to find the machine idle.
    for parts, settings in ((limited, {}), (unlimited, UNLIMITED | SELDOM)):
        if parts:
            run.attack(parts, settings)
    return run.conclude()


@dataclass
class Run:
    given: argparse.Namespace
    size: Size
    progress: Progress
    findings: Findings
    began: float = field(default_factory=time.monotonic)
    sections: dict[str, str] = field(default_factory=dict)
    """Of the report, by part."""

    def attack(self, parts: list[str], settings: dict[str, str]) -> None:
        """Parts that share a platform. One that breaks has not passed, and the others still run."""
        with ExitStack() as opened:
            try:
                on = self._platform(opened, settings)
                builder = Builder(on)
                opened.callback(builder.close)
            except Exception:  # noqa: BLE001
                for part in parts:
                    self._broke(part)
                    self._report(part, {}, 0.0)
                return
            say(f"  the platform is up in {on.home}")
            for part in parts:
                self._play(part, on, builder)

    def _platform(self, opened: ExitStack, settings: dict[str, str]) -> Platform:
        if self.given.running:
            return running_platform(dict(os.environ))
        # Text, as people read it: what reaches it reaches their terminals.
        return opened.enter_context(platform(keep=self.given.keep, LOG_FORMAT="text", **settings))

    def _play(self, part: str, on: Platform, builder: Builder) -> None:
        started, before = time.monotonic(), set(self.findings.counts)
        self.progress.begin(part)
        try:
            ATTACKS[part](on, builder, self.size, self.given.seed, self.findings, self.progress)
            self._judge_connections(part, on)
        except Exception:  # noqa: BLE001
            self._broke(part)
        seconds = time.monotonic() - started
        found = sum(finding.part == part for finding in self.findings.found)
        say(f"  {part}: {found or 'no'} finding{'' if found == 1 else 's'} after {seconds:.0f} s")
        counts = {name: value for name, value in self.findings.counts.items() if name not in before}
        self._report(part, counts, seconds)

    def _judge_connections(self, part: str, on: Platform) -> None:
        """Whoever can make the platform use up what the database allows has stopped it for everybody."""
        held, allowed = on.database_connections()
        self.findings.note(f"connections to the database after {part}", f"{held} of {allowed}")
        if held > MOST_CONNECTIONS * allowed:
            rule = "the processes hold almost all connections that the database allows"
            self.findings.add(part, rule, None, f"{held} of {allowed}")

    def _broke(self, part: str) -> None:
        self.findings.add(part, BROKE, None, traceback.format_exc()[-400:])
        say(traceback.format_exc())

    def _report(self, part: str, counts: Mapping[str, Any], seconds: float) -> None:
        self.sections[part] = section(self.findings, part, counts, command(self.given, self.size), seconds)
        self._save()

    def _save(self) -> None:
        """What there is so far."""
        given = self.given
        if given.findings:
            given.findings.write_text(json.dumps([vars(finding) for finding in self.findings.found], indent=2))
        if given.report:
            paste(given.report, self.sections)

    def conclude(self) -> int:
        self._save()
        if not self.findings.case_exists:
            say(f"make attack: {self.given.part[0]} has no case {self.given.case!r}, so nothing was tested")
            return 2
        lines = self.findings.lines(command(self.given, self.size))
        for line in (*lines, *summary(self.findings, time.monotonic() - self.began)):
            say(line)
        return 1 if self.findings.found else 0


if __name__ == "__main__":
    sys.exit(main())
