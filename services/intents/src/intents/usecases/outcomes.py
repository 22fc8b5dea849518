"""What is submitted, under which policy, and what becomes of it."""

from enum import Enum, auto
from typing import NamedTuple

from intents import model


class Policy(Enum):
    EACH = auto()
    ATOMIC = auto()
    COALESCED = auto()


class Result(NamedTuple):
    """`created` is False for a repeated CANCEL and a dry run; `replayed` repeats the answer to an earlier request."""

    action: model.Action
    created: bool = True
    replayed: bool = False
    legs: tuple[model.Action, ...] = ()
    """Of an order group, what was written with it."""

    @property
    def is_new(self) -> bool:
        """Whether the log has grown by it just now."""
        return self.created and not self.replayed


class Deferred(Exception):
    """It would wait for a lock, or for another request: submit it again, by itself and with a deadline."""


class SiblingRefused(Exception):
    """Another submission of an atomic batch was refused."""


Outcome = Result | Exception


class PendingSubmit(NamedTuple):
    """A submission, or what is wrong with a command that cannot be read; and the facts, if they were read already."""

    submission: model.Submission | Exception
    facts: model.SubmitFacts | None = None
