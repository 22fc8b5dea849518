"""Named steps at which a fault test strikes: TIP_CRASH_AT kills the process there as hard as a power cut does,
TIP_STOP_AT freezes it until SIGCONT, once, as a machine that stops answering for a while.
"""

import os
import signal
import threading

# Read once: a step may be on a path where every microsecond counts.
_strikes = {os.environ.get("TIP_STOP_AT"): signal.SIGSTOP, os.environ.get("TIP_CRASH_AT"): signal.SIGKILL}


def reach(step: str) -> None:
    if step in _strikes:
        # Forgotten first: one that froze again as soon as it woke would never show what it does when it is back.
        # To this very thread: a signal to the process may reach another one first, and this one would go on meanwhile.
        signal.pthread_kill(threading.get_ident(), _strikes.pop(step))
