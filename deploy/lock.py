"""Write the lock files from every package's own pyproject: `make lock`.

The files name versions and hashes, and no address: whoever installs chooses where packages come from.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


OPTIONAL = {"broker_ccxt", "broker_fix"}
"""Packages that are installed on request only: `make install EXTRAS="ccxt fix mcp"`; mcp is an extra of `tip`."""


def packages(*, optional: bool) -> set[str]:
    """What the packages of this repository need, our own packages aside."""
    wanted: set[str] = set()
    for file in [path for depth in ("*", "*/*", "*/*/*") for path in ROOT.glob(f"{depth}/pyproject.toml")]:
        project = tomllib.loads(file.read_text())["project"]
        if optional or file.parent.name not in OPTIONAL:
            wanted.update(project["dependencies"])
        if optional:
            wanted.update(project.get("optional-dependencies", {}).get("mcp", ()))
    return {requirement for requirement in wanted if not requirement.startswith("tip-")}


def group(name: str) -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"][name])


def lock(target: str, *wanted: set[str], constraint: str | None = None) -> None:
    command = ["uv", "pip", "compile", "--universal", "--generate-hashes", "--quiet", "--python-version", "3.11"]
    command += ["--no-strip-extras"]  # pip takes `a[b]` for unpinned where only `a` is
    command += ["--no-annotate", "--no-header", "--output-file", str(ROOT / target), *sys.argv[1:], "-"]
    command += ["--constraint", str(ROOT / constraint)] if constraint else []
    subprocess.run(command, input="\n".join(sorted(set().union(*wanted))), text=True, check=True)


# The widest first: the narrower ones take its versions, so that one environment can hold all of them.
build, dev, everything = group("build"), group("dev"), packages(optional=True)
lock("requirements-bench.lock", everything, build, dev, group("bench"))
lock("requirements-dev.lock", everything, build, dev, constraint="requirements-bench.lock")
lock("requirements-extras.lock", everything, build, constraint="requirements-bench.lock")
lock("requirements.lock", packages(optional=False), build, constraint="requirements-bench.lock")
lock("requirements-security.lock", group("security"))
