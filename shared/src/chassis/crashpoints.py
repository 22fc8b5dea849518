"""Named steps at which a fault test strikes: TIP_CRASH_AT kills the process there as hard as a power cut does,
TIP_STOP_AT freezes it until SIGCONT, as a machine that stops answering for a while.
"""

import os
import signal


def reach(step: str) -> None:
    if os.environ.get("TIP_CRASH_AT") == step:
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("TIP_STOP_AT") == step:
        os.kill(os.getpid(), signal.SIGSTOP)
