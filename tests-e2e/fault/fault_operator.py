"""The `tip` command with what `tip orders` imports, as a script that can be forked: see `tip_testing.processes`."""

from tip import orders
from tip.cli import main

__all__ = ["main", "orders"]

if __name__ == "__main__":
    main()
