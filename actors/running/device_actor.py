"""The actor of a device.

An actor owns one device and a mailbox. Sessions and rendezvous callbacks post messages ("run segment 3 of this part");
the actor serves them in the order of posting and runs the kernels. Three steps on two devices look like this:

    mailbox of CPU:0   Segment(step 1, 0)  Segment(step 2, 0)  Segment(step 1, 1)
    mailbox of CPU:1   Segment(step 1, 0)  Segment(step 3, 0)

One message is one turn; of a long segment a turn runs one chunk, and the next chunk goes back to the front of the
mailbox. `ActorGroup.turns` has the actors in the order in which their messages were posted, so a loop that posts to
itself cannot run ahead of the devices it exchanges tensors with, unless they wait for a worker thread.

Switching trio tasks costs more than most segments. Therefore one task serves the mailboxes of all actors: that of an
actor, or the one that has just started a step. It calls `ActorGroup.serve_mailboxes`, which never awaits, so a short
step over many devices needs no task switch. Once the time budget of the event loop is used up, the task of one actor,
the server, continues the work of all and lets other tasks run in between. The task of an actor has these states:

    PARKED --made the server--> SERVING --no mail in any mailbox--> PARKED
       |                           |    `--Shutdown--> ended
       `---- its slow kernel ------'--> WAITING FOR A THREAD --done--> PARKED, or SERVING if there is no server

Whenever a mailbox has mail, a task serves or has been scheduled to. An exception of a kernel fails its step; the actor
goes on. Work is protected from KeyboardInterrupt, which is raised at the next checkpoint of the main task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import trio

from ...errors import PartitaError, of_kernel
from ..plans.instructions import run_instructions
from .chunks.chunk import SlowChunk, locate_error, run_slow_chunk
from .chunks.executor import run_in_turns
from .chunks.learning import is_observed, learn
from .messages import (
    AT_ONCE,
    Begin,
    Continue,
    FirstRun,
    Message,
    Other,
    Resume,
    Return,
    RunInThread,
    RunSegment,
    Shutdown,
    SlowWork,
    TurnedWork,
)

if TYPE_CHECKING:
    from ..plans.binding import Binder
    from ..plans.instructions import Slots
    from ..plans.plan import Chunk
    from .actor_group import ActorGroup
    from .chunks.chunk import Turns
    from .messages import Owner, PartRun
    from .pacing import Pacer
    from .step import Step


class DeviceActor:
    """The mailbox of a device and the task that serves it. `binder` binds kernels and holds the state of the device.

    While `slow_work` runs in a worker thread, the device does nothing else; `postponed_turns` counts the turns that it
    missed meanwhile.
    """

    __slots__ = (
        "_actor_group",
        "_ended",
        "_last_slice",
        "_parked",
        "binder",
        "limiter",
        "mailbox",
        "name",
        "postponed_turns",
        "slow_work",
    )

    def __init__(self, name: str, binder: Binder, actor_group: ActorGroup) -> None:
        self.name = name
        self.binder = binder
        self.limiter = trio.CapacityLimiter(1)
        self.mailbox: deque[Message] = deque()
        self.postponed_turns = 0
        self.slow_work: SlowWork | None = None
        self._actor_group = actor_group
        self._ended = False
        self._last_slice = 0  # when the task last gave way, or was woken
        self._parked: trio.lowlevel.Task | None = None

    def post(self, message: Message) -> None:
        """Puts a message at the end of the mailbox and wakes the task unless the mailboxes are being served."""
        self.mailbox.append(message)
        self._actor_group.turns.append(self)
        if not self._actor_group.is_serving:
            self._actor_group.find_server()

    def post_first(self, message: Message) -> None:
        """Puts a message at the front of the mailbox. Only for code that a serving task runs: it wakes nobody."""
        self.mailbox.appendleft(message)
        self._actor_group.turns.append(self)

    def start(self, part: PartRun, slots: Slots) -> None:
        """Starts a part of a step, at once or in its turns, see `ActorGroup`."""
        group = self._actor_group
        if len(part.plan.arrivals) <= AT_ONCE and not (group.starts or group.pacer.is_due):
            part.start(slots)
            return
        part.step.part_starts.append(part.start_in_turns(slots))
        group.starts.append((self, part.step))
        if not group.is_serving:
            group.find_server()

    def begin(self, step: Step, start: Callable[[], None]) -> None:
        """Posts the start of a function's part. Of several the latest starts first (see `Begin`)."""
        step.call_starts.setdefault(self, []).append(start)
        self.post(Begin(step))

    def wake(self) -> bool:
        """Schedules the task if it is parked. False if it cannot serve now: it waits for a thread or has ended."""
        if self._parked is not None:
            task, self._parked = self._parked, None
            self._last_slice = self._actor_group.pacer.slice.number
            trio.lowlevel.reschedule(task)
        return not self._ended and self.slow_work is None

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Serves until `Shutdown`. Shielded from cancellation: the session ends its actors after its steps."""
        actor_group, pacer = self._actor_group, self._actor_group.pacer
        with trio.CancelScope(shield=True), np.errstate(all="ignore"):
            while not self._ended:
                if self.slow_work is not None:
                    actor_group.replace_server(self)
                    self._last_slice = pacer.slice.number
                    await self._work_in_thread(self.slow_work)
                    actor_group.find_server()
                    if actor_group.watched:  # this may have been the last that went on
                        actor_group.look_for_deadlocks()
                elif actor_group.server is self:
                    await self._serve(pacer)
                else:
                    self._parked = trio.lowlevel.current_task()
                    await trio.lowlevel.wait_task_rescheduled(self._refuse_abort)
        actor_group.replace_server(self)

    async def _serve(self, pacer: Pacer) -> None:
        """Serves all mailboxes as the server of the group, which it stays while there is mail."""
        # Somebody else may have used up the slice since this task was woken, and a server that went on regardless would
        # keep the event loop for a slice of its own.
        if not pacer.slice.may_go_on(self._last_slice):
            await pacer.yield_now()
        actor_group = self._actor_group
        actor_group.serve_mailboxes(has_turn=True)
        if not actor_group.has_work:
            actor_group.server = None
        elif self.slow_work is None:
            self._last_slice = pacer.slice.number
            await trio.lowlevel.checkpoint()

    def _refuse_abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        """What trio calls on a cancellation, from which actors are shielded."""
        return trio.lowlevel.Abort.FAILED

    def serve_one(self, now: float) -> float:
        """Serves the first message, of a segment one chunk. Takes and returns the time, to read the clock only once."""
        message = self.mailbox.popleft()
        if not isinstance(message, RunSegment):
            return self._serve_other(message, now)
        part, number, next_chunk, chunks = message
        if part.step.error is not None:
            return now
        segment = part.plan.segments[number]
        if chunks is None:
            if not segment.has_run:
                return self._run_first(part, number, run_in_turns(part.plan, segment, part.slots, self.pacer))
            chunks = segment.chunks
        if segment.slow and id(chunks[next_chunk]) in segment.slow:
            chunk = SlowChunk(part.plan, segment, chunks, next_chunk, part.slots)
            self._begin_slow_work(
                SlowWork(part.step, chunk, partial(self._continue_segment, part, number, next_chunk, chunks), part.fail)
            )
            return now
        rest = iter(chunks[next_chunk])
        try:
            run_instructions(rest, part.slots)
            self._continue_segment(part, number, next_chunk, chunks)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything; it fails the step, not the session
            part.fail(locate_error(part.plan, segment, chunks[: next_chunk + 1], rest, error))
        except BaseException as error:  # noqa: BLE001 - KeyboardInterrupt: raised again by Step.wait
            part.step.interrupt(error)
        pacer = self._actor_group.pacer
        ended = pacer.clock()
        if ended - now > pacer.notice_s or is_observed(segment, id(chunks[next_chunk])):
            learn(part.plan, segment, chunks, next_chunk, ended - now, pacer.limits)
        return ended

    def _run_first(self, part: PartRun, number: int, work: Turns) -> float:
        """Goes on with the first run of a segment, until it ends or other tasks or a thread must run."""
        go_on = partial(self.post_first, FirstRun(part, number, work))
        try:
            slow_chunk = next(work)
        except StopIteration:
            part.finished(number)
        except PartitaError as error:
            part.fail(error)
        except BaseException as error:  # noqa: BLE001 - see `serve_one`
            part.step.interrupt(error)
        else:
            if slow_chunk is None:
                go_on()
            else:
                self._begin_slow_work(SlowWork(part.step, slow_chunk, go_on, part.fail))
        return self._actor_group.pacer.clock()

    def _continue_segment(self, part: PartRun, number: int, chunk: int, chunks: tuple[Chunk, ...]) -> None:
        """Posts the chunk after one that has run; after the last one the segment is finished."""
        if chunk + 1 < len(chunks):
            self.post_first(RunSegment(part, number, chunk + 1, chunks))
        else:
            part.finished(number)

    def _begin_slow_work(self, work: SlowWork) -> None:
        """Has the task of this actor give work to a thread; until it has run, no message is served."""
        self.slow_work = work
        self._actor_group.num_slow += 1
        self.wake()

    def _serve_other(self, message: Other, now: float) -> float:
        match message:
            case Begin(step):
                if step.error is None:
                    step.call_starts[self].pop()()
            case Return(call, results):
                if not call.is_ended:
                    results.deliver()
            case Resume():
                self._resume(*message)
            case FirstRun(part):
                return now if part.step.error is not None else self._run_first(*message)
            case Continue():
                self.continue_work(*message)
            case RunInThread(owner, work, chunk):
                if owner.is_ended:
                    work.close()
                else:
                    go_on = partial(self.post_first, Continue(owner, work))
                    self._begin_slow_work(SlowWork(owner.step, chunk, go_on, partial(self.continue_work, owner, work)))
                return now
            case Shutdown():
                self._ended = True
                self.wake()
                return now
        return self._actor_group.pacer.clock()

    def continue_work(self, owner: Owner, work: TurnedWork, error: PartitaError | None = None) -> None:
        """Runs work until it ends or yields, for other tasks or for a chunk in a thread; then it posts what comes next.

        `error` is that of the chunk for which the work has waited.
        """
        if owner.is_ended:
            work.close()
            return
        try:
            slow_chunk = next(work) if error is None else work.throw(error)
        except StopIteration as end:
            owner.done(*end.value)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            owner.fail(of_kernel(owner.op, error))
        except BaseException as error:  # noqa: BLE001 - see `serve_one`
            owner.step.interrupt(error)
        else:
            self.post(Continue(owner, work) if slow_chunk is None else RunInThread(owner, work, slow_chunk))

    def _resume(self, owner: Owner, resume: Callable[[], None]) -> None:
        if owner.is_ended:
            return
        try:
            resume()
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            owner.fail(of_kernel(owner.op, error))
        except BaseException as error:  # noqa: BLE001 - see `serve_one`
            owner.step.interrupt(error)

    def start_soon(self, function: Callable[..., Awaitable[None]], *arguments: object, name: str) -> None:
        """Starts a task in the nursery of the actors."""
        assert self._actor_group.nursery is not None  # a plan with deferred nodes runs on actors that have been started
        self._actor_group.nursery.start_soon(function, *arguments, name=name)

    @property
    def group(self) -> ActorGroup:
        """All actors of the session."""
        return self._actor_group

    @property
    def pacer(self) -> Pacer:
        """The time budget that all actors of the session share."""
        return self._actor_group.pacer

    async def _work_in_thread(self, work: SlowWork) -> None:
        """Runs a slow chunk in a worker thread, while the other actors serve their mail."""
        step, chunk, go_on, fail = work
        pacer = self._actor_group.pacer
        step.thread_began()
        started = pacer.clock()
        try:
            if step.error is None:
                await run_slow_chunk(chunk, self.limiter)
                learn(chunk.plan, chunk.segment, chunk.chunks, chunk.number, pacer.clock() - started, pacer.limits)
            if step.error is None:
                go_on()
        except PartitaError as error:
            fail(error)
        except BaseException as error:  # noqa: BLE001 - see `serve_one`
            step.interrupt(error)
        finally:
            self.slow_work = None
            self._actor_group.num_slow -= 1
            self._actor_group.turns.extendleft([self] * self.postponed_turns)
            self.postponed_turns = 0
            step.thread_ended()
