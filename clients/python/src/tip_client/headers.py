"""What a header of a request can hold."""


def is_header_value(text: str) -> bool:
    """Whether it is held as it is; anything else would fail while it is sent, as if the connection were broken."""
    return text.isascii() and text.isprintable()
