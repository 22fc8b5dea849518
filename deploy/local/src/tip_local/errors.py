"""What the person at the keyboard can do something about."""


class Fault(Exception):
    """Shown as one line, without a stack trace; the text says what is wrong and what changes it."""
