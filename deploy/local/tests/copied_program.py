"""What a test has the nursery copy: shows what it was given and what its memory holds, and ends as its caller says."""

import json
import os
import re
import sys
import time
from pathlib import Path

from chassis.presence import OF_WORKERS

SECRET = rb"secret-of-(\w+)-[0-9a-f]{16}"


def secrets_in_memory() -> list[str]:
    """Whose secrets they are."""
    found = set()
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in Path("/proc/self/maps").read_text().splitlines():
            addresses, rights = line.split()[:2]
            start, end = (int(part, 16) for part in addresses.split("-"))
            if rights.startswith("rw") and end - start < 1 << 28:
                memory.seek(start)
                found |= {match[1].decode() for match in re.finditer(SECRET, memory.read(end - start))}
    return sorted(found)


if __name__ == "__main__":
    shown = {"environment": dict(os.environ), "arguments": sys.argv[1:], "leads": os.getpid() == os.getsid(0)}
    group = Path("/proc/self/autogroup")
    shown |= {"niceness": os.nice(0), "group": group.read_text().split()[1:] if group.exists() else []}
    if "TENANT" in os.environ:
        OF_WORKERS.note(os.environ["TENANT"])
        shown["is_alone"] = OF_WORKERS.is_alone(os.environ["TENANT"])
    sys.stdout.write(json.dumps({**shown, "secrets": secrets_in_memory()}) + "\n")
    sys.stdout.flush()
    if "SHARED" in os.environ:
        os.write(int(os.environ["SHARED"]), b"shared")
    if sys.argv[1] == "stay":
        time.sleep(60)
    sys.exit(int(sys.argv[1]))
