"""Why there is no result, and the exit codes."""

KEPT, NOT_KEPT, WRONG_USAGE, UNREACHABLE = 0, 1, 2, 3


class CannotCheck(Exception):
    """Nothing was found out. The message is one line and names no secret."""

    code = WRONG_USAGE


class BrokerUnreachable(CannotCheck):
    code = UNREACHABLE


class KitFailed(CannotCheck):
    """Facts that were not run are neither kept nor not."""

    code = UNREACHABLE
