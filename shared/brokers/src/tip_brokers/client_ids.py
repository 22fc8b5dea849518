"""What a broker does with a client order id that it has seen before."""

from enum import StrEnum


class ClientIds(StrEnum):
    """What can be promised follows from it.

    UNIQUE refuses it: an order is never doubled. HEADER answers the first order again, for a time: the same within that
    time. ECHO takes it twice, but can be queried by it: after an unknown outcome the order is sent again only when
    the broker has said several times that there is none. Its adapter makes every request expire within the time of a
    call, so that none takes effect after such an answer. NONE cannot be queried: a person has to find out.
    """

    UNIQUE = "unique"
    HEADER = "header"
    ECHO = "echo"
    NONE = "none"
