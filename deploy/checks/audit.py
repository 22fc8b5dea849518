"""Known vulnerabilities of the pinned dependencies, from a service that first proves that it can find one.

pip-audit reports "no known vulnerabilities" also when the service it queries has no data, as one behind a package
mirror does. So a release whose vulnerability has been public for years is looked up first. A service that does not find
it is not believed, and when there is none that does, the answer is "not checked" and never "none".
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KNOWN = "urllib3==1.24.1"
"""CVE-2019-11324, CVE-2020-26137 and more."""
SERVICES = (("pypi",), ("osv",))
TIMEOUT_S = "5"
NOT_CHECKED = "not checked: no vulnerability service reachable"


@dataclass(frozen=True)
class Report:
    vulnerable: list[str]
    skipped: list[str]
    """What the service was not queried for, and why."""


Audit = Callable[[Path, tuple[str, ...]], str]
"""What pip-audit writes about these pins after querying this service."""


def pip_audit(requirements: Path, service: tuple[str, ...]) -> str:
    return subprocess.run(
        [
            *(str(Path(sys.executable).with_name("pip-audit")), "--progress-spinner", "off", "--format", "json"),
            *("--disable-pip", "--no-deps", "--timeout", TIMEOUT_S, "--requirement", str(requirements)),
            *("--vulnerability-service", *service),
        ],
        capture_output=True,
        text=True,
        check=False,
    ).stdout


def report(written: str) -> Report | None:
    """What the service knows against the pins; None if it gave no answer."""
    try:
        dependencies = json.loads(written)["dependencies"]
    except (ValueError, KeyError):
        return None
    vulnerable = [
        f"{dependency['name']} {dependency['version']}: {found['id']}, fixed in {found['fix_versions']}"
        for dependency in dependencies
        for found in dependency.get("vulns", ())
    ]
    skipped = [
        f"{dependency['name']}: not checked: {dependency['skip_reason']}"
        for dependency in dependencies
        if "skip_reason" in dependency
    ]
    return Report(vulnerable, skipped)


def believable(service: tuple[str, ...], audit: Audit) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        known = Path(folder) / "known.txt"
        known.write_text(KNOWN + "\n")
        found = report(audit(known, service))
        return found is not None and bool(found.vulnerable)


def main(locks: list[Path], services: tuple[tuple[str, ...], ...] = SERVICES, audit: Audit = pip_audit) -> int:
    service = next((service for service in services if believable(service, audit)), None)
    if service is None:
        sys.stdout.write(f"{NOT_CHECKED}\n")
        return 0
    reports = {lock: report(audit(lock, service)) for lock in locks}
    for lock, found in reports.items():
        for line in _lines(found, service[0]):
            sys.stdout.write(f"{lock.name}: {line}\n")
    return int(any(found and found.vulnerable for found in reports.values()))


def _lines(found: Report | None, service: str) -> list[str]:
    if found is None:
        return [NOT_CHECKED]
    return [*found.vulnerable, *found.skipped] or [f"nothing known against it, says {service}"]


if __name__ == "__main__":
    sys.exit(main([ROOT / f"requirements{kind}.lock" for kind in ("", "-extras", "-dev", "-security")]))
