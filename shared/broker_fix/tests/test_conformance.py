"""`tip broker check`, through a gateway against QuickFIX."""

import subprocess
import sys
from pathlib import Path

import pytest

TIP = Path(sys.executable).with_name("tip")


@pytest.mark.timeout(400)
def test_a_fix_session_keeps_all_that_it_claims() -> None:
    pytest.importorskip("quickfix", reason="QuickFIX has no wheel for this Python")
    done = subprocess.run([TIP, "broker", "check", "fix"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok    a direct order goes where the account says" in done.stdout
    assert done.stdout.endswith("Claimed and not kept: nothing.\n")
