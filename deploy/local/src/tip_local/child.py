"""Become another program that ends together with its parent. Run by path, on the standard library alone.

    python -I -S child.py PARENT_PID DEATH_SIGNAL IDENTITY NICENESS PROGRAM [ARGUMENT ...]

IDENTITY is `same`; or `namespace`, which looks unprivileged from inside (Postgres refuses to be root) while files
still belong to the caller; or `nobody`, which is unprivileged for real. Identity comes first: the kernel forgets the
death signal when credentials change.
"""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

NOBODY = 65534
CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
CANNOT_START = 126


def enter_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "user namespaces are not available")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{NOBODY} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{NOBODY} {gid} 1")


def become_nobody() -> None:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def die_with(parent: int, signal_number: int) -> None:
    """Linux only; on other systems the next start ends what was left running."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent:  # it died before the signal was requested
        sys.exit(CANNOT_START)


def be_nice(niceness: int) -> None:
    """Give way to others. Linux may divide the processors between sessions first, of which this process leads one."""
    if niceness:
        os.nice(niceness)
        with suppress(OSError):  # it does not
            Path("/proc/self/autogroup").write_text(str(niceness))


def main(arguments: list[str]) -> None:
    parent, signal_number, identity, niceness, *program = arguments
    if identity == "namespace":
        enter_namespace()
    elif identity == "nobody":
        become_nobody()
    die_with(int(parent), int(signal_number))
    be_nice(int(niceness))
    os.execvp(program[0], program)  # noqa: S606 - words of our own, no shell # nosec B606


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.stderr.write(f"cannot start {sys.argv[5:6]}: {error}\n")
        sys.exit(CANNOT_START)
