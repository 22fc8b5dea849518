"""Named steps at which a fault test strikes: TIP_CRASH_AT kills the process there as hard as a power cut does,
TIP_STOP_AT freezes it until SIGCONT, once, as a machine that stops answering for a while.
"""

import os
import signal

# Read once: a step may be on a path where every microsecond counts.
_strikes = {os.environ.get("TIP_STOP_AT"): signal.SIGSTOP, os.environ.get("TIP_CRASH_AT"): signal.SIGKILL}


def reach(step: str) -> None:
    if step in _strikes:
        # Forgotten first: one that froze again as soon as it woke would never show what it does when it is back.
        os.kill(os.getpid(), _strikes.pop(step))
