"""`tip` as a test calls it: in this process, with a home and a configuration of its own."""

import json
from collections.abc import Mapping
from typing import Any

from click.testing import CliRunner, Result

from tip import cli

NONE_OF_MINE = ("TIP_KEY", "TIP_TOKEN", "TIP_URL", "TIP_ACCOUNT", "TIP_PROFILE", "TIP_ORGANIZATION", "TIP_EVENTS_URL")


class TipCaller:
    """Calls `tip` as one caller."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = {**dict.fromkeys(NONE_OF_MINE), **environment}

    def __call__(self, *words: str, stdin: str | None = None, **environment: str) -> Result:
        return CliRunner().invoke(cli.main, words, input=stdin, env={**self.environment, **environment})

    def done(self, *words: str, **more: Any) -> str:
        """What it prints when it ends with 0."""
        result = self(*words, **more)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *words: str, **more: Any) -> Any:
        return json.loads(self.done(*words, "--json", **more))
