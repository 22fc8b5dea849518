"""Named steps at which a fault test strikes: TIP_CRASH_AT kills the process there as hard as a power cut does,
TIP_STOP_AT freezes it until SIGCONT, once, as a machine that stops answering for a while.
"""

import os
import signal


def reach(step: str) -> None:
    if os.environ.get("TIP_CRASH_AT") == step:
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("TIP_STOP_AT") == step:
        # Forgotten first: one that froze again as soon as it woke would never show what it does when it is back.
        del os.environ["TIP_STOP_AT"]
        os.kill(os.getpid(), signal.SIGSTOP)
