"""Write the lock files from every package's own pyproject: `make lock`.

The files name versions and hashes, and no address: whoever installs chooses where packages come from.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def requirements(*groups: str) -> list[str]:
    """What the packages of this repository need, our own packages aside, plus the named dependency groups."""
    wanted: set[str] = set()
    for file in [path for depth in ("*", "*/*", "*/*/*") for path in ROOT.glob(f"{depth}/pyproject.toml")]:
        wanted.update(tomllib.loads(file.read_text())["project"]["dependencies"])
    for group in groups:
        wanted.update(tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"][group])
    return sorted(requirement for requirement in wanted if not requirement.startswith("tip-"))


def lock(target: str, *groups: str, constraint: str | None = None) -> None:
    command = ["uv", "pip", "compile", "--universal", "--generate-hashes", "--quiet", "--python-version", "3.11"]
    command += ["--no-annotate", "--no-header", "--output-file", str(ROOT / target), *sys.argv[1:], "-"]
    command += ["--constraint", str(ROOT / constraint)] if constraint else []
    subprocess.run(command, input="\n".join(requirements(*groups)), text=True, check=True)


# The widest first: the narrower ones take its versions, so that one environment can hold all three.
lock("requirements-bench.lock", "build", "dev", "bench")
lock("requirements-dev.lock", "build", "dev", constraint="requirements-bench.lock")
lock("requirements.lock", "build", constraint="requirements-bench.lock")
