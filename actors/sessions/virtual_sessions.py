"""Sessions on a virtual clock: what they need to open, what they refuse, and their timelines.

Such a session runs the graphs that `partita.devices.cut` gives. It refuses what would change these graphs, and what
measures real time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ...collector import collector_paused
from ...errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from ..running.threads import run_in_thread

if TYPE_CHECKING:
    from ...devices.timing import CostSource, Timeline
    from ...devices.timing.session_timeline import SessionTimeline, StepSpan
    from ...graph import ConfigProto, RunOptions
    from ..running.virtual.clock import VirtualClock
    from ..running.virtual.record import StepRecord
    from .lifetime import OwnerThread
    from .steps import Steps
    from .worker_protocol import SessionWorkers

CLOCKS = ("real", "virtual")


class StepRecording:
    """Takes up one step on a virtual clock, of several that run: `run` and callables get a new one as `recording`.

    It holds what its timeline is made of, so keep it as long as you need that.
    """

    def __init__(self) -> None:
        self._record: StepRecord | None = None

    def begin(self, record: StepRecord) -> None:
        """Takes up a step that starts; the session calls this."""
        self._record = record

    def check_is_new(self) -> None:
        """Raises FailedPreconditionError if it has a step already."""
        if self._record is not None:
            raise FailedPreconditionError(
                f"the recording has step {self._record.number} already; give every step a new StepRecording"
            )

    @property
    def span(self) -> StepSpan:
        """Number, begin, end and state of the step, in the time of the session; FailedPreconditionError without one."""
        if self._record is None:
            raise FailedPreconditionError("no step has begun with this recording; give it to `run` first")
        return self._record.span

    def timeline(self) -> Timeline:
        """The timeline of the step, from 0, as `Session.timeline` of the last one. May be called in any thread.

        FailedPreconditionError before the step has ended, and for one that failed; InvalidArgumentError for one that
        took no simulated time.
        """
        number, _, _, state = self.span
        if state == "failed":
            raise FailedPreconditionError(
                f"step {number} failed; Session.whole_timeline has its events as far as it came, "
                "in a session opened with keep_timeline=True"
            )
        if state == "running":
            raise FailedPreconditionError(f"step {number} is still under way; ask when `run` has returned")
        assert self._record is not None  # it has a span
        return self._record.timeline()


def check_recording(clock: VirtualClock | None, recording: StepRecording | None) -> None:
    """Raises FailedPreconditionError for a recording that has a step, or in a session on the real clock."""
    if recording is not None:
        present_time_ns(clock)
        recording.check_is_new()


def costs_of(
    clock: str, cost_source: CostSource | None, settings: ConfigProto, *, keep_timeline: bool = False
) -> CostSource | None:
    """The source of costs of a session on a virtual clock, None for one on the real clock.

    Raises InvalidArgumentError for another clock, for a source that a real clock does not use, and for settings that a
    session on a virtual clock does not honour.
    """
    if clock not in CLOCKS:
        raise InvalidArgumentError(f"clock={clock!r} is none of {', '.join(map(repr, CLOCKS))}")
    if clock == "real":
        if keep_timeline:
            raise InvalidArgumentError(
                'keep_timeline: only simulated time has timelines; open the session with clock="virtual"'
            )
        if cost_source is not None:
            raise InvalidArgumentError(
                'cost_source: only simulated time has costs; open the session with clock="virtual"'
            )
        return None
    options = settings.graph_options
    if options.build_cost_model:
        raise InvalidArgumentError(
            "ConfigProto.graph_options.build_cost_model: a session on a virtual clock measures no times; "
            "use Session.timeline"
        )
    if cost_source is not None:
        return cost_source
    from ...devices import FittedSource  # sessions on the real clock load no simulation

    return FittedSource()


@collector_paused()
def load_virtual_clock() -> None:
    """Loads the modules of virtual clocks, which sessions on the real clock do without; it takes long only once."""
    from ..running.virtual import body, calls, clock, virtual_step  # noqa: F401 - they are used when a session needs them


def check_virtual_options(options: RunOptions) -> None:
    """Raises InvalidArgumentError for a trace, which would measure real time."""
    if options.trace_level:
        raise InvalidArgumentError(
            "RunOptions.trace_level: a session on a virtual clock measures no times; use Session.timeline"
        )


def no_partial_runs() -> UnimplementedError:
    """The error of a partial run on a virtual clock."""
    return UnimplementedError(
        "a step on a virtual clock takes all feeds at its start: use `run`, or a session on the real clock"
    )


def present_time_ns(clock: VirtualClock | None) -> int:
    """The simulated time of a session. Raises FailedPreconditionError where there is none."""
    if clock is None:
        raise FailedPreconditionError('the session runs in real time; open it with clock="virtual" to simulate time')
    return clock.now_ns


class SimulatedTime:
    """What a session says of its simulated time."""

    _thread: OwnerThread
    _workers: SessionWorkers
    _steps: Steps

    def timeline(self) -> Timeline:
        """The last finished step of a session on a virtual clock, from 0: events, memory, makespan in simulated time.

        Raises FailedPreconditionError before the first step, and in a session on the real clock; InvalidArgumentError
        for a step that took no simulated time.
        """
        return self._last_record().timeline()

    @trio.lowlevel.enable_ki_protection
    async def timeline_in_thread(self) -> Timeline:
        """As `timeline`, made in a thread, so that the event loop goes on; of the step that is the last one now."""
        return await run_in_thread(self._last_record().timeline)

    def _last_record(self) -> StepRecord:
        self._thread.check()
        present_time_ns(self._workers.clock)
        record = self._steps.last_record
        if record is None:
            raise FailedPreconditionError("no step has finished yet, so there is no timeline; run a step first")
        return record

    def whole_timeline(self) -> SessionTimeline:
        """All steps of a session on a virtual clock until now, of those too that failed; events have their step.

        Raises FailedPreconditionError before the first step and in a session that was opened without `keep_timeline`.
        """
        self._thread.check()
        clock = self._workers.clock
        present_time_ns(clock)
        assert clock is not None  # it has a time
        if clock.records is None:
            raise FailedPreconditionError("the session keeps its last step only; open it with keep_timeline=True")
        if not clock.records:
            raise FailedPreconditionError("no step has begun yet, so there is no timeline; run a step first")
        from ..running.virtual.session_record import session_timeline  # other sessions need no simulated hardware

        return session_timeline(clock, clock.records)

    @property
    def now_ns(self) -> int:
        """Simulated nanoseconds since a session on a virtual clock was opened, while steps were under way.

        Raises FailedPreconditionError in a session on the real clock.
        """
        return present_time_ns(self._workers.clock)
