"""What pip needs of a lock file, so that it installs tomorrow what it installs today."""

import re
from importlib import metadata
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
LOCKS = sorted(path.name for path in REPOSITORY.glob("requirements*.lock"))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("file", LOCKS)
def test_a_lock_file_pins_the_extras_that_packages_want_of_each_other(file: str) -> None:
    """pip takes `a[b]` for unpinned where only `a` is, as soon as there is a newer `a`."""
    found = re.findall(r"^([\w.-]+)(\[.*\])?==", (REPOSITORY / file).read_text(), re.M)
    pins = {_normal(name): extras for name, extras in found}
    wanted = {
        _normal(requirement.partition("[")[0])
        for distribution in metadata.distributions()
        if _normal(distribution.name) in pins or distribution.name.startswith("tip-")
        for requirement in distribution.requires or ()
        if re.match(r"[\w.-]+\[", requirement) and "extra ==" not in requirement
    }

    assert wanted
    assert {name for name in wanted & pins.keys() if not pins[name]} == set()
