"""Attack a whole platform as another tenant, and as nobody at all, would; then say what gave way.

    python tests-e2e/attack/run.py --size ten-minutes
    python tests-e2e/attack/run.py --part matrix --seed 7

Exit code 0 means that nothing was found. Whatever is found is printed with the command that reproduces it.
"""

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import attack_fairness
import attack_fuzz
import attack_matrix
import attack_secrets
import attack_sockets
import attack_streams
import attack_tokens
from attack_findings import Findings
from attack_options import PARTS, Size, arguments, command
from attack_platform import UNLIMITED, Platform, platform
from attack_report import paste, report, summary
from attack_tenants import Builder

AS_SHIPPED = ("streams", "fairness")
"""Parts that attack the limits themselves: where they measure, the platform has its limits as it is shipped."""
Part = Callable[[Platform, Builder, Size, int, str | None, Findings], None]
ATTACKS: dict[str, Part] = {
    "matrix": attack_matrix.run,
    "fuzz": attack_fuzz.run,
    "tokens": attack_tokens.run,
    "sockets": attack_sockets.run,
    "streams": attack_streams.run,
    "fairness": attack_fairness.run,
    "secrets": attack_secrets.run,
}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    given, size = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the platform is stopped, too
    began = time.monotonic()
    findings = Findings()
    chosen = [part for part in PARTS if part in (given.part or PARTS)]
    say(f"make attack: {command(given, size)}")
    limited = [part for part in chosen if part in AS_SHIPPED and size.samples]
    for parts, settings in (([part for part in chosen if part not in limited], UNLIMITED), (limited, {})):
        if parts:
            attacked(given, size, parts, settings, findings)
    seconds = time.monotonic() - began
    return conclude(given, size, chosen, findings, seconds)


def attacked(
    given: argparse.Namespace, size: Size, parts: list[str], settings: dict[str, str], findings: Findings
) -> None:
    with ExitStack() as opened:
        # Text, as people read it: what reaches it reaches their terminals.
        on = opened.enter_context(platform(keep=given.keep, LOG_FORMAT="text", **settings))
        builder = Builder(on)
        opened.callback(builder.close)
        say(f"  the platform is up in {on.home}")
        for part in parts:
            started = time.monotonic()
            try:
                ATTACKS[part](on, builder, size, given.seed, given.case, findings)
            except Exception:  # noqa: BLE001 - the other parts still run, and this one has not passed
                findings.add(part, "the attack itself broke", "0", traceback.format_exc()[-400:])
                say(traceback.format_exc())
            found = sum(finding.part == part for finding in findings.found)
            findings.note(f"seconds of {part}", round(time.monotonic() - started, 1))
            say(
                f"  {part}: {found or 'no'} finding{'' if found == 1 else 's'} after {time.monotonic() - started:.0f} s"
            )


def conclude(given: argparse.Namespace, size: Size, parts: list[str], findings: Findings, seconds: float) -> int:
    for line in (*findings.lines(command(given, size)), *summary(findings, seconds)):
        say(line)
    if given.findings:
        given.findings.write_text(json.dumps([vars(finding) for finding in findings.found], indent=2))
    if given.report:
        paste(given.report, report(findings, command(given, size), parts, seconds))
    return 1 if findings.found else 0


if __name__ == "__main__":
    sys.exit(main())
