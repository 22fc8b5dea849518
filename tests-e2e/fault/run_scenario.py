"""One scenario, several, or all of them, each reported green or red with what was seen.

python tests-e2e/fault/run_scenario.py lost_fill
python tests-e2e/fault/run_scenario.py --list
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fault_scenario import in_order, stage
from scenarios import SCENARIOS


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--list", action="store_true", help="only name them")
    given = parser.parse_args()
    if given.list:
        for scenario in SCENARIOS.values():
            say(f"{scenario.name:31} {scenario.says}")
        return 0
    if unknown := set(given.names) - SCENARIOS.keys():
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}; see --list")
    chosen = in_order(SCENARIOS[name] for name in dict.fromkeys(given.names or SCENARIOS))
    started, red = time.monotonic(), []
    with stage(chosen) as platform:
        say(f"platform ready after {time.monotonic() - started:.1f} s, logs in {platform.on.directory}")
        for scenario in chosen:
            outcome = platform.outcome(scenario)
            say(f"{outcome}\n       done after {time.monotonic() - started:.1f} s")
            red += [] if outcome.good else [scenario.name]
        say(f"{len(chosen) - len(red)} green, {len(red)} red {' '.join(red)}")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
