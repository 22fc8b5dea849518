"""The process behind `tip start`: `tip up` without a terminal. What stops it goes to stderr as one line."""

import sys

from tip_local.errors import Fault
from tip_local.settings import Settings
from tip_local.up import up

if __name__ == "__main__":
    try:
        up(Settings.from_env(), console=None)
    except Fault as fault:
        sys.exit(f"tip: {fault}")
