"""A step over several processes, as one of them has it.

    tell       what this process says to others about the step: calls of functions, collectives, deadlocks
    receive    what they say to it

It ends when its host says `over`, not when its own parts have ended: calls from elsewhere may still begin parts here. A
message for a step that has failed does nothing.

    RUNNING --all own parts have ended--> `ended` is called --over()--> DONE

`traffic` counts the messages of the step that may set something going. Those of `tell` and `receive` are counted here;
the host adds each tensor and each key that the rendezvous of the step asks for, at both ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ....devices.kernels.communication.meeting import MEETINGS_KEY
from ....devices.kernels.communication.remote.meetings import RemoteMeetings
from ....devices.kernels.communication.remote.messages import Meet, MemberRefused
from ....errors import InternalError
from ..step import Step
from .messages import (
    SESSION,
    CallBegin,
    CallEnd,
    NothingGoesOn,
    NowStuck,
    Probe,
    ProbeAnswer,
    StepMessage,
    Watch,
    is_counted,
)
from .traffic import Traffic

if TYPE_CHECKING:
    from ....errors import PartitaError
    from ....rendezvous import Rendezvous
    from ...plans.tracing import NodeRecord
    from ..actor_group import ActorGroup
    from ..callee import ResultCollector
    from ..step import Cancellable


class ShareStarter(Protocol):
    """The functions of one graph, as `remote.functions.RemoteFunctions`."""

    def begin(self, step: RemoteStep, process: str, begin: CallBegin) -> None:
        """Starts the parts of a call that are in this process, for a caller in another one."""


class RemoteStep(Step):
    """One step in one process. `records` are those of all traced nodes that run here."""

    __slots__ = (
        "_functions",
        "_group",
        "_is_watched",
        "_own_ended",
        "_reports",
        "_returns",
        "_tell",
        "records",
        "traffic",
    )

    def __init__(
        self,
        number: int,
        rendezvous: Rendezvous,
        own: str,
        tell: Callable[[str, StepMessage], object],
        functions: Callable[[int], ShareStarter],
        group: ActorGroup,
        ended: Callable[[], object],
    ) -> None:
        """`own` is the name of this process; `tell` sends a message to another; `functions` finds those of a number.

        `ended` is called when all own parts have ended.
        """
        super().__init__(number, rendezvous)
        self.traffic = Traffic()
        self.records: list[NodeRecord] = []
        self._tell = tell
        self._functions = functions
        self._own_ended = ended
        self._group = group
        self._returns: dict[tuple[str, str], ResultCollector] = {}
        self._is_watched = False
        self._reports = False
        self.state(MEETINGS_KEY, lambda: RemoteMeetings(own, rendezvous, self._tell_session))

    def begin(self, num_parts: int) -> None:
        """As `Step.begin`, for this process's own parts."""
        super().begin(num_parts + 1)
        if not num_parts:
            self._own_ended()

    def part_ended(self, part: object) -> None:
        """As `Step.part_ended`."""
        super().part_ended(part)
        if self._unfinished == 1:
            self._own_ended()

    def over(self) -> None:
        """The step has ended in all processes, so that no call comes any more."""
        super().part_ended(self)

    def tell(self, process: str, message: StepMessage) -> None:
        """Says something to another process."""
        if is_counted(message):
            self.traffic.sent += 1
        self._tell(process, message)

    def _tell_session(self, message: StepMessage) -> None:
        self.tell(SESSION, message)

    def receive(self, process: str, message: StepMessage) -> None:
        """Takes a message of another process; InternalError for one that none sends.

        Call it under `np.errstate(all="ignore")`, and serve the mailboxes later.
        """
        if is_counted(message):
            self.traffic.received += 1
        if self.error is not None:
            return
        match message:
            case CallBegin(functions=number):
                self._functions(number).begin(self, process, message)
            case CallEnd(frame, results):
                self._returns.pop((process, frame)).returned(results)
            case Meet() | MemberRefused():
                self.state(MEETINGS_KEY, _no_meetings).receive(message)
            case Probe(turn):
                self._answer(turn)
            case NothingGoesOn():
                super().look_for_deadlock()
            case _:
                raise InternalError(f"{type(message).__name__} is no message for a process with devices")

    def begin_elsewhere(self, process: str, begin: CallBegin, ended: ResultCollector) -> None:
        """Has another process start its parts of a call; `ended` gets what they compute."""
        self._returns[process, begin.frame] = ended
        self.tell(process, begin)

    def fail(self, error: PartitaError) -> None:
        """As `Step.fail`; nothing is waited for from other processes either."""
        super().fail(error)
        if self.error is not None:
            self._returns.clear()

    def when_stuck(self, call: Cancellable, callback: Callable[[], None]) -> None:
        """As `Step.when_stuck`; the session looks for deadlocks from now on."""
        super().when_stuck(call, callback)
        if not self._is_watched:
            self._is_watched = True
            self._tell_session(Watch())

    def look_for_deadlock(self) -> bool:
        """Tells the session that this process is stuck, if it has said otherwise. Which call fails is not up to it."""
        self._stuck = {call: callback for call, callback in self._stuck.items() if call in self.calls}
        if self._reports and self._is_stuck():
            self._reports = False
            self._tell_session(NowStuck())
        return self._reports

    def _answer(self, turn: int) -> None:
        group = self._group
        is_stuck = not (group.has_work or group.num_slow or group.is_serving) and self._is_stuck()
        if not is_stuck:
            self._reports = True
            group.watched.add(self)
        self._tell_session(ProbeAnswer(turn, is_stuck, self.traffic.sent, self.traffic.received))


def _no_meetings() -> RemoteMeetings:
    raise AssertionError("a step over several processes has its meetings from the beginning")
