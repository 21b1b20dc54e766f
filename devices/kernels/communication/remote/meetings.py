"""Where the members of a collective meet in a step over several processes: what one of these processes does.

    W1 (CPU:0)                 coordinator                 W2 (CPU:3)
      MemberJoined ----------------> <---------------- MemberJoined
      <--------------------- Meet, at home in W1 ---------------->
      <---------------- value of CPU:3, at the rendezvous --------
      combines CPU:0, CPU:3 in the order of ranks
      ------------------ output of CPU:3 ------------------------>

Values wait at the rendezvous until the home asks for them, and outputs until their process does. If several members of
a process get one and the same output, it is sent once: a dead tensor stands for "as the first member of your process".

Deadlines stay timers of the members' calls. Deadlocks are seen by the step, and the coordinator says who fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

import numpy as np

from .....errors import PartitaError, of_kernel
from .....graph.dtypes import Array
from .....rendezvous.key import ROOT_FRAME, stem
from ..meeting import IN_LOOP_BYTES, Brings, Member, bytes_of
from .messages import FromCoordinator, Meet, MeetingSeat, MemberJoined, MemberLate, MemberRefused, ToCoordinator, Unmet

if TYPE_CHECKING:
    from .....rendezvous import Outcome, Rendezvous
    from ....state import WaitingTensors
    from ..meeting_table import InstanceKey

_VALUE, _COUNTS, _OUTPUT = "value", "counts", "output"


class _Brought(NamedTuple):
    """What a member of another process brings."""

    device: str
    value: Array | None
    counts: Array | None


class RemoteMeetings:
    """The meetings of one step in one process; a `meeting.MeetingPlace`."""

    __slots__ = ("_members", "_num_joined", "_own", "_rendezvous", "_tell")

    def __init__(self, own: str, rendezvous: Rendezvous, tell: Callable[[ToCoordinator], object]) -> None:
        """`own` is the name of this process; `tell` sends a message to the coordinator."""
        self._own = own
        self._rendezvous = rendezvous
        self._tell = tell
        self._members: dict[int, Member] = {}
        self._num_joined = 0

    def join(self, key: InstanceKey, member: Member, waiting: WaitingTensors) -> None:
        """A member comes, and waits for what the coordinator says."""
        number, self._num_joined = self._num_joined, self._num_joined + 1
        self._members[number] = member
        call, seconds = member.call, member.timeout_s
        member.hold(waiting)
        call.on_cancel(partial(self._forget, number))
        if seconds > 0:
            call.after(seconds, partial(self._is_late, number))
        else:
            call.when_stuck(_leave_to_coordinator)
        brings, counts = member.value is not None, member.counts is not None
        self._tell(
            MemberJoined(
                number, key, call.iterations, member.device, member.terms, member.rank, brings, counts, seconds
            )
        )

    def _forget(self, number: int) -> None:
        self._members.pop(number, None)

    def _is_late(self, number: int) -> None:
        self._tell(MemberLate(number))

    def receive(self, message: FromCoordinator) -> None:
        """Takes a message of the coordinator; one for members that have been cancelled does nothing."""
        match message:
            case Meet():
                self._meet(message)
            case MemberRefused(number, error):
                member = self._members.pop(number, None)
                if member is not None:
                    member.wait_no_more()
                    member.call.fail(error)
            case _:
                assert_never(message)

    def _meet(self, meet: Meet) -> None:
        own = [seat for seat in meet.seats if seat.process == self._own]
        if not all(seat.number in self._members for seat in own):
            return
        members = {seat: self._members[seat.number] for seat in own}
        if meet.at_home in members:
            for seat in own:
                del self._members[seat.number]
            _Home(self._rendezvous, self._tell, meet, members).gather()
        else:
            _Guests(self._rendezvous, self._members, meet, members).give()


class _Home:
    """A meeting in the process that combines. `members` are its own, by seat."""

    __slots__ = ("_meet", "_members", "_missing", "_received", "_rendezvous", "_tell")

    def __init__(
        self,
        rendezvous: Rendezvous,
        tell: Callable[[ToCoordinator], object],
        meet: Meet,
        members: dict[MeetingSeat, Member],
    ) -> None:
        self._rendezvous = rendezvous
        self._tell = tell
        self._meet = meet
        self._members = members
        self._received: dict[str, Array] = {}
        self._missing = 0

    def gather(self) -> None:
        """Asks for the values of members elsewhere; when all are there, combines."""
        meet, members = self._meet, self._members
        keys = [key for seat in meet.seats if seat not in members for key in _value_keys(meet, seat)]
        self._missing = len(keys)
        if keys:
            self._rendezvous.expect(keys, self._arrived)
        else:
            self._combine()

    def _arrived(self, key: object, outcome: Outcome) -> None:
        if isinstance(outcome, PartitaError):
            return  # the step has failed
        self._received[str(key)] = np.asarray(outcome.value)
        self._missing -= 1
        if not self._missing:
            self._combine()

    def _combine(self) -> None:
        """Computes the outputs, in a worker thread if they take long."""
        brought, first = [self._brought(seat) for seat in self._meet.seats], self._members[self._meet.at_home]
        self._received.clear()
        in_thread = bytes_of(brought) > IN_LOOP_BYTES
        first.call.compute(partial(_combined, first, brought), self._end, in_thread=in_thread)

    def _brought(self, seat: MeetingSeat) -> Brings:
        own = self._members.get(seat)
        if own is not None:
            return own
        key = partial(_key, self._meet, seat)
        return _Brought(seat.device, self._received.get(key(_VALUE)), self._received.get(key(_COUNTS)))

    def _end(self, outputs: Sequence[Any] | PartitaError) -> None:
        """Ends the calls of own members and sends the outputs of others."""
        if isinstance(outputs, PartitaError):
            self._fail(outputs)
            return
        first_of: dict[str, Any] = {}
        for seat, output in zip(self._meet.seats, outputs, strict=True):
            member = self._members.get(seat)
            if member is not None:
                member.done(output)
                continue
            is_again = first_of.get(seat.process) is output
            first_of.setdefault(seat.process, output)
            for number, tensor in enumerate(output if isinstance(output, tuple) else (output,)):
                key = _key(self._meet, seat, f"{_OUTPUT}{number}")
                self._rendezvous.send(key, None if is_again else tensor, is_again)

    def _fail(self, error: PartitaError) -> None:
        """The error is one of the member that came last, wherever that is."""
        last = self._members.get(self._meet.seats[self._meet.last])
        if last is not None:
            last.call.fail(error)
        else:
            self._tell(Unmet(self._meet.meeting, error))


class _Guests:
    """The members of one process in a meeting that another process combines, by seat, in the order of ranks.

    They stay among the `open_members` until they have their outputs: one may still be told that it fails.
    """

    __slots__ = ("_meet", "_members", "_missing", "_open_members", "_outputs", "_rendezvous")

    def __init__(
        self,
        rendezvous: Rendezvous,
        open_members: dict[int, Member],
        meet: Meet,
        members: dict[MeetingSeat, Member],
    ) -> None:
        self._rendezvous = rendezvous
        self._open_members = open_members
        self._meet = meet
        self._members = members
        self._outputs: dict[str, Any] = {}
        self._missing = 0

    def give(self) -> None:
        """Leaves the values at the rendezvous and asks for the outputs; when all are there, ends the calls."""
        keys: list[str] = []
        for seat, member in self._members.items():
            for key, tensor in zip(_value_keys(self._meet, seat), _tensors_of(member), strict=True):
                self._rendezvous.send(key, tensor)
            member.value = member.counts = None  # the rendezvous has them until they are asked for
            keys += self._output_keys(seat, member)
        self._missing = len(keys)
        self._rendezvous.expect(keys, self._arrived)

    def _output_keys(self, seat: MeetingSeat, member: Member) -> list[str]:
        return [_key(self._meet, seat, f"{_OUTPUT}{number}") for number in range(member.num_outputs)]

    def _arrived(self, key: object, outcome: Outcome) -> None:
        if isinstance(outcome, PartitaError):
            return  # the step has failed
        self._outputs[str(key)] = _AS_FIRST if outcome.is_dead else outcome.value
        self._missing -= 1
        if not self._missing:
            self._end()

    def _end(self) -> None:
        first: tuple[Any, ...] = ()
        for seat, member in self._members.items():
            output = tuple(self._outputs[key] for key in self._output_keys(seat, member))
            output = first if output[0] is _AS_FIRST else output
            first = first or output
            self._open_members.pop(seat.number, None)
            member.done(output)


_AS_FIRST = object()


def _combined(first: Member, brought: Sequence[Brings]) -> Sequence[Any] | PartitaError:
    """The outputs, or the error, which may belong to a member of another process."""
    try:
        with np.errstate(all="ignore"):
            return first.combine(brought)
    except Exception as error:  # noqa: BLE001 - what is registered by others may raise anything
        return of_kernel(first.op, error)


def _value_keys(meet: Meet, seat: MeetingSeat) -> list[str]:
    """The keys of what a member brings."""
    parts = [_VALUE] * seat.brings + [_COUNTS] * seat.counts
    return [_key(meet, seat, part) for part in parts]


def _tensors_of(member: Member) -> list[Array]:
    return [tensor for tensor in (member.value, member.counts) if tensor is not None]


def _key(meet: Meet, seat: MeetingSeat, part: str) -> str:
    """The key of a tensor between a member and the home; no edge of a graph has a name with a blank."""
    src, dst = (meet.at_home, seat) if part.startswith(_OUTPUT) else (seat, meet.at_home)
    return stem(src.device, src.incarnation, dst.device, f"meeting {meet.meeting}/{seat.number}/{part}") + ROOT_FRAME


def _leave_to_coordinator() -> None:
    """Called when the step is stuck: which member fails, with what text, only the coordinator can say."""
