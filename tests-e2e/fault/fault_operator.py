"""The `tip` command with what `tip orders` imports, as a script that can be forked: see `tip_testing.processes`."""

from tip import unresolved_orders
from tip.cli import main

__all__ = ["main", "unresolved_orders"]

if __name__ == "__main__":
    main()
