"""What the processes of one step say to each other about calls of functions, and about deadlocks.

    caller -> a process with parts     CallBegin     start them, with these arguments
    a process with parts -> caller     CallEnd       they have ended, with these results
    process -> session                 Watch         a call of mine can only be ended by nodes of this step
    session -> process                 Probe         can anything of this step go on in you?
    process -> session                 ProbeAnswer   yes or no, and how many messages it has sent and received
    process -> session                 NowStuck      after a yes: not any more

The messages of collectives are in `devices.kernels.communication.remote.messages`. Which step they are of says who
carries them. The session is the process of the name SESSION.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ....devices.kernels.communication.remote.messages import FromCoordinator, ToCoordinator

if TYPE_CHECKING:
    from ..callee import CalledFunction

SESSION = ""
"""the process in which the session is, which has no devices"""


class Caller(NamedTuple):
    """A node that calls, and the function that it is in, "" in the graph itself."""

    node: str
    function: str


class CallBegin(NamedTuple):
    """The beginning of a call. `functions` is the number of the functions of a graph, which all processes know.

    `frame` is the suffix of the keys of the call, which no other call of the step has. `callers` are the nodes that led
    here, the calling one first; `op` and `device` are those of the first. `scope` has prefix and iteration of a traced
    call. `arguments` are, by number, those that the parts need.
    """

    functions: int
    called: CalledFunction
    frame: str
    depth: int
    iterations: tuple[int, ...]
    callers: tuple[Caller, ...]
    op: str
    device: str
    scope: tuple[str, str] | None
    arguments: Mapping[int, Any]


class CallEnd(NamedTuple):
    """The end of all parts of a call in one process; `results` are those that they have computed, by number."""

    frame: str
    results: Mapping[int, Any]


class Watch(NamedTuple):
    """The step may come to a deadlock; sent once by each process."""


class Probe(NamedTuple):
    """Number `turn` of the questions whether a step is stuck."""

    turn: int


class ProbeAnswer(NamedTuple):
    """Whether nothing of the step can go on in a process unless a message comes, of those counted in both ways."""

    turn: int
    is_stuck: bool
    sent: int
    received: int


class NowStuck(NamedTuple):
    """A process that was busy when it was asked is so no longer."""


class NothingGoesOn(NamedTuple):
    """The step is stuck, and no member of a collective waits: other calls that can only end by nodes of it do."""


CallMessage: TypeAlias = CallBegin | CallEnd
WatchMessage: TypeAlias = Watch | Probe | ProbeAnswer | NowStuck | NothingGoesOn
StepMessage: TypeAlias = CallMessage | WatchMessage | ToCoordinator | FromCoordinator


def is_counted(message: StepMessage) -> bool:
    """Whether it may set something going, so that a step with such a message under way is not stuck."""
    return not isinstance(message, WatchMessage)
