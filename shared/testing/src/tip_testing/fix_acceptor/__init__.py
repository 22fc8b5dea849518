"""A broker that speaks FIX 4.4: QuickFIX, unmodified, in a process of its own, with a small market behind it.

`Acceptor` starts, kills and restarts the process; `FixLine` is a line to it that can be cut at every message; `Gateway`
is the process of ours that owns a session with it.
"""

from tip_testing.fix_acceptor.gateway import Gateway, prepare, start_gateway
from tip_testing.fix_acceptor.line import FixLine
from tip_testing.fix_acceptor.process import Acceptor

__all__ = ["Acceptor", "FixLine", "Gateway", "prepare", "start_gateway"]
