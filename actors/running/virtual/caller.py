"""What a graph that runs is told by whoever called it, and what its sends tell receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..pending import PendingCall


class Sent(NamedTuple):
    """What a send gives to the rendezvous: a tensor, and the entry of the log at which it was sent."""

    value: Any  # a tensor of any type, or a variable
    entry: int


class Caller(NamedTuple):
    """Who called the graph that runs: as in `Part`; for the graph of a request all have their defaults.

    `frame` is the name of the frame that the graph runs in; `scope` is put before the names of its nodes ("call/");
    `iteration` says in which iterations of loops the call is.
    """

    depth: int = 0
    call: PendingCall | None = None
    function: str = ""
    frame: str = ""
    scope: str = ""
    iteration: str = ""


NOBODY = Caller()
"""who calls the graph of a request"""
