"""What a session says to its workers and they to it; which connection a message came by says who speaks.

    session -> worker                                   worker -> session
    HostOpen       be one of the workers
    Arrange        who hosts what from now on
    BindFunctions  the functions of the session's graph
    RegisterShare  keep these partitions                ShareRegistered   compiled, or the error
    ForgetShares
    StartShare     run them in a step                   ShareEnded        the own parts of a step have ended
    StopShare      the step fails with an error         ShareFailed       a node failed
                                                        ShareStopped      nothing works for the failed step any more
    ReportTimes    of a traced step                     ShareTimes
    StepsOver      forget these steps
    RestartDevice  its state is gone
    TakeVariables  of a device that moves               VariablesTaken
    PutVariables
                                                        StateKinds        what a device holds has changed
                                                        PeerLost          another worker cannot be reached
                                                        HostRetires       dask closes the worker
    HostClose      the session leaves

    between any two     OfStep      a message of `running.remote.messages` that belongs to a step

Messages of one sender arrive in the order in which they were sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .....errors import PartitaError
    from ....running.remote.messages import StepMessage
    from .layout import HostLayout


class HostOpen(NamedTuple):
    """The first message to a worker. `seed` is that of the session; times are in seconds."""

    seed: int | None
    budget_s: float
    thread_limit_s: float


class Arrange(NamedTuple):
    """Who hosts which devices. A worker makes those that are new to it and forgets those that it has no more."""

    layout: HostLayout


class BindFunctions(NamedTuple):
    """The functions of a graph, under a number that all workers know.

    `library` are the bytes of a FunctionDefLibrary. Their nodes may be on these `devices`, all of the session if there
    are none; `soft` is soft placement.
    """

    number: int
    library: bytes
    soft: bool
    devices: tuple[str, ...]


class RegisterShare(NamedTuple):
    """A worker's share of a request. `partitions` are bytes of GraphDefs by device.

    `functions` is the number of those that its nodes may call, 0 for none. `feeds` are the keys that the session sends.
    """

    handle: int
    partitions: tuple[tuple[str, bytes], ...]
    functions: int
    feeds: tuple[str, ...]


class ShareRegistered(NamedTuple):
    """A share is compiled, or could not be."""

    handle: int
    error: PartitaError | None


class ForgetShares(NamedTuple):
    """Forget the shares with these handles; running steps go on."""

    handles: tuple[int, ...]


class StartShare(NamedTuple):
    """Run a share in a step. All steps below `lowest` are over. With `awaits_host` the session will send more feeds.

    `fed` are feeds that travel along, by their place among those of the share: small ones, which need no asking.
    """

    step: int
    handle: int
    lowest: int
    with_trace: bool
    awaits_host: bool
    fed: Mapping[int, Any]


class ShareEnded(NamedTuple):
    """The parts of a share have ended."""

    step: int


class ShareFailed(NamedTuple):
    """A node of a worker has failed, and the step there with it."""

    step: int
    error: PartitaError


class StopShare(NamedTuple):
    """The step fails everywhere; answered by `ShareStopped`."""

    step: int
    error: PartitaError


class ShareStopped(NamedTuple):
    """Nothing works for a failed step in a worker any more; `waiting` are the first keys that had no tensor."""

    step: int
    waiting: tuple[str, ...]


class ReportTimes(NamedTuple):
    """A traced step has ended in all workers; answered by `ShareTimes`."""

    step: int


class ShareTimes(NamedTuple):
    """The bytes of the StepStats of a worker."""

    step: int
    stats: bytes


class StepsOver(NamedTuple):
    """These steps are over in all processes."""

    steps: tuple[int, ...]


class RestartDevice(NamedTuple):
    """A device loses its state. An `Arrange` with its new incarnation follows."""

    device: str


class TakeVariables(NamedTuple):
    """Tell the variables of a device that will be hosted elsewhere."""

    device: str


class VariablesTaken(NamedTuple):
    """Variables of a device: container, type name, name, number of the element type and declared shape of each, None
    for an unknown one; `values` are those that are initialised, by their place."""

    device: str
    variables: tuple[tuple[str, str, str, int, tuple[int | None, ...] | None], ...]
    values: Mapping[int, Any]


class PutVariables(NamedTuple):
    """Make these variables on a device; fields are those of `VariablesTaken`."""

    device: str
    variables: tuple[tuple[str, str, str, int, tuple[int | None, ...] | None], ...]
    values: Mapping[int, Any]


class StateKinds(NamedTuple):
    """What kinds of state a device holds, in words."""

    device: str
    kinds: tuple[str, ...]


class PeerLost(NamedTuple):
    """The connection to another worker has ended."""

    process: str
    error: PartitaError


class HostRetires(NamedTuple):
    """dask closes the worker: its devices must be hosted elsewhere."""


class HostClose(NamedTuple):
    """The session is closed: forget it."""


class OfStep(NamedTuple):
    """A message of a step, or the error that takes the place of one that could not be sent."""

    step: int
    message: StepMessage | PartitaError


CONTROL = (
    *(HostOpen, Arrange, BindFunctions, RegisterShare, ShareRegistered, ForgetShares, StartShare, ShareEnded),
    *(ShareFailed, StopShare, ShareStopped, ReportTimes, ShareTimes, StepsOver, RestartDevice, TakeVariables),
    *(VariablesTaken, PutVariables, StateKinds, PeerLost, HostRetires, HostClose, OfStep),
)
