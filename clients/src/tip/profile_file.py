"""The file of profiles that the SDK reads: what is written by hand in it, comments included, stays."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tip.exits import WRONG_USAGE, Failure
from tip_client.private_files import write_private
from tip_client.settings import configuration_file


def path() -> Path:
    return configuration_file(os.environ)


def read() -> Any:
    """The document; an empty one where there is no file."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(path().read_text())
    except FileNotFoundError:
        return tomlkit.document()
    except (OSError, UnicodeDecodeError, TOMLKitError) as error:
        raise Failure(
            f"{path()} cannot be read: {type(error).__name__}", WRONG_USAGE, hint="mend or remove it"
        ) from None


def profiles() -> dict[str, dict[str, Any]]:
    found = read().unwrap().get("profiles", {})
    return found if isinstance(found, dict) else {}


def names() -> list[str]:
    return list(profiles()) if path().exists() else []


def default() -> str | None:
    found = read().unwrap().get("default")
    return found if isinstance(found, str) else None


def add(name: str, values: Mapping[str, str]) -> None:
    """Add a profile, or put this one in place of the former; the first one is the default."""
    import tomlkit

    document = read()
    document.setdefault("default", name)
    document.setdefault("profiles", tomlkit.table(is_super_table=True))[name] = dict(values)
    _write(tomlkit.dumps(document))


def use(name: str) -> None:
    import tomlkit

    document = read()
    document["default"] = name
    _write(tomlkit.dumps(document))


def remove(name: str) -> None:
    import tomlkit

    document = read()
    del document["profiles"][name]
    if document.get("default") == name:
        del document["default"]
    _write(tomlkit.dumps(document))


def _write(text: str) -> None:
    write_private(path(), text)
