"""Counts the messages of one step in one process, to find out whether any is under way."""

from __future__ import annotations


class Traffic:
    """How many messages of a step a process has sent and received, those included that wait to be sent.

    Both ends count a message in the same units: a tensor, a key that is asked for, or a `messages.StepMessage` is one.
    """

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.sent = self.received = 0
