"""The session's side of a step over several processes: who meets in collectives, and whether the step is stuck.

`traffic` counts the messages of the step that the session sends and receives, as that of `RemoteStep` does in the other
processes: those of `receive` and those that this sends are counted here, tensors and asked keys by the host.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ....devices.kernels.communication.remote.coordinator import MeetingCoordinator
from ....devices.kernels.communication.remote.messages import MemberJoined, MemberLate, Unmet
from ....errors import InternalError
from .deadlocks import DeadlockWatch
from .messages import NothingGoesOn, NowStuck, ProbeAnswer, StepMessage, Watch, is_counted
from .traffic import Traffic


class StepCoordination:
    """Coordinates one step in these processes."""

    __slots__ = ("_awaits_host", "_deadlocks", "_meetings", "_processes", "_tell", "traffic")

    def __init__(
        self,
        processes: Collection[str],
        tell: Callable[[str, StepMessage], object],
        incarnation: Callable[[str], int],
        after: Callable[[float, Callable[[], None]], object],
        *,
        awaits_host: bool = False,
    ) -> None:
        """`tell` sends a message of the step to a process; `after` calls a function after some seconds, unless the step
        has ended. With `awaits_host` the user may still feed the step, which is therefore never stuck."""
        self.traffic = Traffic()
        self._processes = processes
        self._tell = tell
        self._awaits_host = awaits_host
        self._meetings = MeetingCoordinator(self._send, incarnation)
        self._deadlocks = DeadlockWatch(processes, self._send, self._counts, after, self._is_stuck)

    def receive(self, process: str, message: StepMessage) -> None:
        """Takes a message of a process; InternalError for one that no process sends to a session."""
        if is_counted(message):
            self.traffic.received += 1
        match message:
            case MemberJoined() | MemberLate() | Unmet():
                self._meetings.receive(process, message)
            case Watch() | NowStuck():
                if not self._awaits_host:
                    self._deadlocks.watch()
            case ProbeAnswer():
                self._deadlocks.answered(process, message)
            case _:
                raise InternalError(f"{type(message).__name__} is no message for a session")

    def _send(self, process: str, message: StepMessage) -> None:
        if is_counted(message):
            self.traffic.sent += 1
        self._tell(process, message)

    def _counts(self) -> tuple[int, int]:
        return self.traffic.sent, self.traffic.received

    def _is_stuck(self) -> None:
        if not self._meetings.refuse_waiting():
            for process in self._processes:
                self._send(process, NothingGoesOn())
