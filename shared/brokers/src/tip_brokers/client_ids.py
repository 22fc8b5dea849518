"""What a broker does with a client order id that it has seen before."""

from enum import StrEnum


class ClientIds(StrEnum):
    """What can be promised follows from it.

    UNIQUE refuses it: an order is never doubled. HEADER answers the first order again, for a time: the same within that
    time. ECHO only repeats it in its answers, NONE not even that: after an unknown outcome nothing is sent again
    without a definite "there is no such order", and with NONE a person has to find out.
    """

    UNIQUE = "unique"
    HEADER = "header"
    ECHO = "echo"
    NONE = "none"

    @property
    def may_resend(self) -> bool:
        """Whether sending the same id again after an unknown outcome cannot make a second order."""
        return self in (ClientIds.UNIQUE, ClientIds.HEADER)
